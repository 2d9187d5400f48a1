//! Loop devices, mounts and throttles, removed when dropped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

/// The version 1 block I/O control groups, on all distributions that have them.
const BLKIO: &str = "/sys/fs/cgroup/blkio";

pub fn tool(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!(
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

const SHARED_MEMORY: &str = "/dev/shm";

const TEST: &str = "halfpower-test-";

/// Creates a directory, in memory if possible, to spare the machine's disk. Its name holds the
/// process id, which identifies leftovers.
pub fn memory_directory() -> tempfile::TempDir {
    static SWEEP: Once = Once::new();
    SWEEP.call_once(sweep);
    let prefix = format!("{TEST}{}-", std::process::id());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix);
    let shared = Path::new(SHARED_MEMORY);
    if shared.is_dir() { builder.tempdir_in(shared).unwrap() } else { builder.tempdir().unwrap() }
}

/// Removes what killed tests left. Unmounts before it accesses files, which might hang.
pub fn sweep() {
    let names =
        fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten().map(|entry| entry.path());
    for left in names.filter(|path| is_left(path)) {
        // Loop devices first, because the kernel forgets the path of a backing file after the
        // unmount. A mounted device goes with its mount.
        let loops =
            tool("losetup", &["--list", "--noheadings", "--raw", "--output", "NAME,BACK-FILE"])
                .unwrap_or_default();
        for (device, file) in loops.lines().filter_map(|line| line.split_once(' ')) {
            if Path::new(file).starts_with(&left) {
                let _ = tool("losetup", &["--detach", device]);
            }
        }
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mounts = mounts
            .lines()
            .filter_map(|line| line.split(' ').nth(1))
            .filter(|at| Path::new(at).starts_with(&left));
        // Nested mounts come later in the list.
        for at in mounts.collect::<Vec<_>>().into_iter().rev() {
            let _ = tool("umount", &["--lazy", at]);
        }
        let _ = fs::remove_dir_all(&left);
    }
}

fn is_left(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let process = name
        .strip_prefix(TEST)
        .and_then(|rest| rest.split_once('-'))
        .and_then(|(id, _)| id.parse::<u32>().ok());
    process.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists())
}

pub struct Loop {
    pub device: String,
    pub file: PathBuf,
    _directory: tempfile::TempDir,
}

impl Loop {
    pub fn make(size: u64) -> Result<Loop, String> {
        Loop::of_sectors(size, 512)
    }

    pub fn of_sectors(size: u64, bytes: u32) -> Result<Loop, String> {
        let directory = memory_directory();
        let file = directory.path().join("disk");
        File::create(&file)
            .and_then(|made| made.set_len(size))
            .map_err(|error| error.to_string())?;
        let sectors = format!("--sector-size={bytes}");
        let device = tool("losetup", &["--find", "--show", &sectors, text(&file)])?;
        // A device keeps its queue settings when detached, and the scheduler also sets the queue
        // length. Write the number of requests twice: the kernel may show 128 with fewer tags, and
        // only allocates tags when the number changes.
        let queue = format!("/sys/class/block/{}/queue", device.trim_start_matches("/dev/"));
        for (setting, value) in
            [("scheduler", "none"), ("nr_requests", "64"), ("nr_requests", "128")]
        {
            fs::write(format!("{queue}/{setting}"), value)
                .map_err(|error| format!("{queue}/{setting}: {error}"))?;
        }
        Ok(Loop { device, file, _directory: directory })
    }

    pub fn number(&self) -> Result<String, String> {
        let name = self.device.trim_start_matches("/dev/");
        let file = format!("/sys/class/block/{name}/dev");
        fs::read_to_string(&file)
            .map(|number| number.trim().to_owned())
            .map_err(|error| format!("{file}: {error}"))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = tool("losetup", &["--detach", &self.device]);
    }
}

pub struct Mount {
    pub at: PathBuf,
    // Unmounted first, then detached.
    device: Option<Loop>,
    _directory: tempfile::TempDir,
}

impl Mount {
    pub fn with(arguments: &[&str]) -> Result<Mount, String> {
        let directory = tempfile::Builder::new()
            .prefix("halfpower-test-")
            .tempdir()
            .map_err(|error| error.to_string())?;
        let at = directory.path().join("mount");
        fs::create_dir(&at).map_err(|error| error.to_string())?;
        let words: Vec<&str> = arguments.iter().copied().chain([text(&at)]).collect();
        tool("mount", &words)?;
        Ok(Mount { at, device: None, _directory: directory })
    }

    pub fn tmpfs(size: &str) -> Result<Mount, String> {
        Mount::with(&["-t", "tmpfs", "-o", &format!("size={size}"), "halfpower-test"])
    }

    pub fn on_loop(kind: &str, size: u64) -> Result<Mount, String> {
        let device = Loop::make(size)?;
        let quiet = if kind == "ext4" { "-q" } else { "-f" };
        tool(&format!("mkfs.{kind}"), &[quiet, &device.device])?;
        let mut mount = Mount::with(&["-t", kind, &device.device])?;
        mount.device = Some(device);
        Ok(mount)
    }

    pub fn device(&self) -> &Loop {
        self.device.as_ref().expect("only of a mount on a loop device")
    }

    pub fn name(&self) -> &str {
        text(&self.at)
    }

    pub fn make_read_only(&self) -> Result<(), String> {
        tool("mount", &["-o", "remount,ro", self.name()]).map(|_| ())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if tool("umount", &[self.name()]).is_err() {
            // Still in use: detach it from the tree now; the last user releases it.
            let _ = tool("umount", &["--lazy", self.name()]);
        }
    }
}

/// Limits on a device, for all processes of the root group.
pub struct Throttle {
    number: String,
    files: Vec<PathBuf>,
}

impl Throttle {
    pub fn set(device: &Loop, limits: &[(&str, u64)]) -> Result<Throttle, String> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let group = own.lines().find_map(|line| line.split_once(":blkio:").map(|(_, group)| group));
        let group = group.ok_or("the kernel has no blkio control groups (version 1)")?;
        let mut throttle = Throttle { number: device.number()?, files: Vec::new() };
        for (name, limit) in limits {
            let file = PathBuf::from(format!(
                "{BLKIO}{}/blkio.throttle.{name}_device",
                group.trim_end_matches('/')
            ));
            fs::write(&file, format!("{} {limit}", throttle.number))
                .map_err(|error| format!("{}: {error}", file.display()))?;
            throttle.files.push(file);
        }
        Ok(throttle)
    }

    pub fn change(&self, limit: u64) {
        for file in &self.files {
            fs::write(file, format!("{} {limit}", self.number)).unwrap();
        }
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = fs::write(file, format!("{} 0", self.number));
        }
    }
}
