//! The stage of a row: its files and mounts, and snapshots before and after.

use crate::common::places::{memory_directory, sweep, tool};
use crate::common::{skip, wait_until};
use crate::fuse::{Asked, Fault, FaultyFs, Instead};
use crate::or_skip;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

mod groups;
mod images;
mod props;

pub use groups::Limit;
use groups::make_group;
use images::{erofs_image, mount_file, node, write_table};
use props::Prop;

const MIB: u64 = 1 << 20;

pub const DISK: u64 = 8 * MIB;

const PARTITION: u64 = MIB;

const SETTINGS: [&str; 6] =
    ["read_ahead_kb", "scheduler", "nr_requests", "nomerges", "rq_affinity", "wbt_lat_usec"];

/// A name that clears the screen, sets the window's title and reverses the text direction.
const STEERING: &str = "a\u{1b}[2J\u{1b}]0;b\u{7}\u{202e}c\rd";

/// Names are relative to the stage's directory.
#[derive(Debug, Clone, Copy)]
pub enum Given {
    /// A user's file of 1 MiB.
    File(&'static str),
    /// A file with this text, in which `{NAME}` is replaced.
    Text(&'static str, &'static str),
    Noise(&'static str),
    Directory(&'static str),
    Link(&'static str, &'static str),
    HardLink(&'static str, &'static str),
    Pipe(&'static str),
    ReadPipe(&'static str),
    /// A node of character device 1:N, such as `/dev/null` (3) or `/dev/full` (7).
    CharNode(&'static str, u32),
    BlockNode(&'static str, &'static str),
    /// A loop device over the zero-filled NAME.img.
    Disk(&'static str),
    /// A loop device over an existing file, from an offset.
    DiskOver(&'static str, &'static str, u64),
    ReadOnlyDiskOver(&'static str, &'static str),
    Bytes(&'static str, u64, &'static [u8]),
    Made(&'static str, &'static str),
    /// A partition table with one partition from 1 MiB to the end of the disk.
    Partitions(&'static str),
    /// A disk with such a partition table, and the name of its partition's device.
    Partitioned(&'static str, &'static str),
    /// A disk's file system, mounted read-only on a new directory.
    Mounted(&'static str, &'static str),
    MountedElsewhere(&'static str),
    /// An overlay on a new directory: its lower directory, then the upper one, which receives the
    /// writes.
    Overlay(&'static str, &'static str, &'static str),
    /// A loop device over a file of such an overlay (lower, upper, file), visible only in another
    /// mount namespace.
    DiskElsewhere(&'static str, &'static str, &'static str),
    Bound(&'static str, &'static str),
    /// An empty EROFS image, mounted without a loop device.
    MountedFile(&'static str, &'static str),
    /// A new btrfs over two disks, the second of which has this name.
    Btrfs(&'static str, &'static str),
    Reflink(&'static str, &'static str),
    Swap(&'static str),
    Zram(&'static str),
    HeldForWriting(&'static str),
    HeldByServer(&'static str),
    Removed(&'static str),
    Tmpfs(&'static str, &'static str),
    Ext4(&'static str),
    ReadOnly(&'static str),
    Full(&'static str),
    /// A mount on a new directory with these arguments of `mount`, in which `{NAME}` is replaced.
    Volume(&'static str, &'static str),
    BoundOver(&'static str, &'static str),
    Shell(&'static str),
    LazilyUnmounted(&'static str),
    Faulty(&'static str, &'static [Fault]),
    Faults(&'static str, &'static [Fault]),
    FaultyFile(&'static str, &'static str),
    Length(&'static str, u64),
    TestFileReplaced(&'static str, &'static str),
    Released(&'static str),
    Mode(&'static str, u32),
    Owned(&'static str, u32),
    /// Moves a file to NAME.was and replaces it by a link to another name.
    Replaced(&'static str, &'static str),
    Socket(&'static str),
    Unheld,
    /// A file on which a process of this user holds a shared lock.
    Locked(&'static str, u32),
    Group(&'static str, Limit),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    mode: u32,
    inode: u64,
    rdev: u64,
    content: u64,
}

pub struct Stage {
    // Dropped in reverse order, before the directory.
    props: Vec<Prop>,
    devices: BTreeMap<&'static str, String>,
    directory: TempDir,
    before: BTreeMap<OsString, Seen>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        while self.props.pop().is_some() {}
    }
}

impl Stage {
    pub fn new() -> Stage {
        let directory = memory_directory();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Stage { props: Vec::new(), devices: BTreeMap::new(), directory, before: BTreeMap::new() }
    }

    pub fn freeze(&self, group: &str, frozen: bool) {
        let group = self.path(group);
        let (old, new) = (group.join("freezer.state"), group.join("cgroup.freeze"));
        let (file, text) = match (old.exists(), frozen) {
            (true, true) => (old, "FROZEN"),
            (true, false) => (old, "THAWED"),
            (false, true) => (new, "1"),
            (false, false) => (new, "0"),
        };
        fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }

    pub fn here(&self) -> &Path {
        self.directory.path()
    }

    /// Replaces names in braces: a disk by its device, any other by its path.
    pub fn word(&self, word: &str) -> OsString {
        let mut made = Vec::new();
        let mut rest = word;
        while let Some((before, (name, after))) =
            rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
        {
            made.extend(before.as_bytes());
            match name {
                "here" => made.extend(self.here().as_os_str().as_bytes()),
                "steering" => made.extend(STEERING.as_bytes()),
                "bytes" => made.extend(b"a\xff"),
                "long" => made.extend([b'x'; 5000]),
                "blank" => made.push(b' '),
                "open" => made.push(b'{'),
                "close" => made.push(b'}'),
                name => match self.devices.get(name) {
                    Some(device) => made.extend(device.as_bytes()),
                    None => made.extend(self.here().join(name).as_os_str().as_bytes()),
                },
            }
            rest = after;
        }
        made.extend(rest.as_bytes());
        OsString::from_vec(made)
    }

    /// Returns the path of a name in the table. A star matches the rest of the first component.
    pub fn path(&self, name: &str) -> PathBuf {
        if let Some((start, rest)) = name.split_once('*') {
            let entries = fs::read_dir(self.here()).into_iter().flatten().flatten();
            let found = entries
                .map(|entry| entry.file_name())
                .find(|one| one.as_bytes().starts_with(start.as_bytes()));
            return self
                .here()
                .join(found.unwrap_or("absent".into()))
                .join(rest.trim_start_matches('/'));
        }
        match self.devices.get(name) {
            Some(device) => PathBuf::from(device),
            None => self.here().join(self.word(name)),
        }
    }

    pub fn faulty(&self, name: &str) -> &FaultyFs {
        let found = self.props.iter().find_map(|prop| match prop {
            Prop::Faulty(own, faulty) if *own == name => Some(faulty),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no faulty file system '{name}' was given"))
    }

    /// Returns an error that says what this machine lacks.
    pub fn give(&mut self, given: &Given) -> Result<(), String> {
        let at = |name: &str| self.path(name);
        let io = |name: &str| {
            let name = name.to_owned();
            move |error: std::io::Error| format!("{name}: {error}")
        };
        match *given {
            Given::File(name) => fs::write(at(name), data(name)).map_err(io(name)),
            Given::Text(name, text) => {
                fs::write(at(name), self.word(text).as_bytes()).map_err(io(name))
            }
            Given::Noise(name) => {
                let noise: Vec<u8> =
                    (0..50_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
                fs::write(at(name), noise).map_err(io(name))
            }
            Given::Directory(name) => fs::create_dir(at(name)).map_err(io(name)),
            Given::Link(name, to) => symlink(at(to), at(name)).map_err(io(name)),
            Given::HardLink(name, of) => fs::hard_link(at(of), at(name)).map_err(io(name)),
            Given::Pipe(name) => node(&at(name), libc::S_IFIFO, 0),
            Given::ReadPipe(name) => {
                node(&at(name), libc::S_IFIFO, 0)?;
                let end = format!("{name}.read");
                let reader = Command::new("sh")
                    .args(["-c", "cat \"$0\" >\"$1\""])
                    .args([at(name), at(&end)])
                    .spawn()
                    .map_err(io(name))?;
                self.props.push(Prop::Process(reader));
                Ok(())
            }
            Given::CharNode(name, minor) => node(&at(name), libc::S_IFCHR, libc::makedev(1, minor)),
            Given::BlockNode(name, disk) => {
                let device = fs::metadata(at(disk)).map_err(io(disk))?.rdev();
                node(&at(name), libc::S_IFBLK, device)
            }
            Given::Disk(name) => {
                let image = self.here().join(format!("{name}.img"));
                File::create(&image).and_then(|image| image.set_len(DISK)).map_err(io(name))?;
                self.attach(name, &image, &[])
            }
            Given::DiskOver(name, file, offset) => {
                let file = at(file);
                self.attach(name, &file, &["--offset", &offset.to_string()])
            }
            Given::ReadOnlyDiskOver(name, file) => {
                let file = at(file);
                self.attach(name, &file, &["--read-only"])
            }
            Given::Overlay(name, lower, upper) => {
                let work = format!("{}.work", shown(&at(upper)));
                fs::create_dir(&work).and_then(|()| fs::create_dir(at(name))).map_err(io(name))?;
                let (lower, upper) = (shown(&at(lower)), shown(&at(upper)));
                let layers = format!("lowerdir={lower},upperdir={upper},workdir={work}");
                self.mount(name, &["-t", "overlay", "halfpower-test", "-o", &layers])
            }
            Given::DiskElsewhere(lower, upper, file) => {
                let work = format!("{}.work", shown(&at(upper)));
                fs::create_dir(&work).map_err(io(upper))?;
                let layers = format!(
                    "lowerdir={},upperdir={},workdir={work}",
                    shown(&at(lower)),
                    shown(&at(upper))
                );
                let script = "mount -t overlay -o \"$0\" halfpower-test \"$2\" && losetup --find --show \"$2/$1\" && exec sleep infinity";
                let device = self.elsewhere(script, &[layers.as_str(), file])?;
                self.props.push(Prop::Loop(device));
                Ok(())
            }
            Given::Bound(name, of) => {
                fs::create_dir(at(name)).map_err(io(name))?;
                self.mount(name, &["--bind", &shown(&at(of))])
            }
            Given::MountedFile(name, image) => {
                fs::write(at(image), erofs_image())
                    .and_then(|()| fs::create_dir(at(name)))
                    .map_err(io(name))?;
                // mount(8) would create a loop device.
                mount_file(&at(image), &at(name))?;
                self.props.push(Prop::Mount(at(name)));
                Ok(())
            }
            Given::Btrfs(name, second) => self.mount_btrfs(name, second),
            Given::Reflink(name, of) => {
                // Two files born in the same tick of the kernel's clock (10 ms at 100 Hz) are taken
                // for one.
                std::thread::sleep(Duration::from_millis(20));
                tool("cp", &["--reflink=always", &shown(&at(of)), &shown(&at(name))])?;
                tool("sync", &["--file-system", &shown(&at(name))]).map(drop)
            }
            Given::Swap(name) => {
                let place = shown(&at(name));
                fs::set_permissions(&place, fs::Permissions::from_mode(0o600)).map_err(io(name))?;
                tool("mkswap", &["--quiet", &place])?;
                tool("swapon", &[&place])?;
                self.props.push(Prop::Swap(place));
                Ok(())
            }
            Given::Zram(name) => {
                let number =
                    fs::read_to_string("/sys/class/zram-control/hot_add").map_err(io("zram"))?;
                let number = number.trim().to_owned();
                self.props.push(Prop::Zram(number.clone()));
                let size = format!("/sys/class/block/zram{number}/disksize");
                fs::write(size, DISK.to_string()).map_err(io("zram"))?;
                let device = format!("/dev/zram{number}");
                wait_until("the node of the disk in memory", || Path::new(&device).exists());
                self.devices.insert(name, device);
                Ok(())
            }
            Given::HeldForWriting(name) => {
                let mut holder = Command::new("sh")
                    .args(["-c", "exec 3<>\"$0\" && echo open && exec sleep infinity"])
                    .arg(at(name))
                    .stdout(Stdio::piped())
                    .spawn()
                    .map_err(io(name))?;
                let open = holder.stdout.take().expect("piped").read(&mut [0]).map_err(io(name));
                self.props.push(Prop::Process(holder));
                open.map(drop)
            }
            Given::HeldByServer(name) => {
                self.props.push(Prop::Held(File::open(at(name)).map_err(io(name))?));
                Ok(())
            }
            Given::Removed(name) => fs::remove_file(at(name)).map_err(io(name)),
            Given::Bytes(name, offset, bytes) => {
                let file = File::options().write(true).open(at(name)).map_err(io(name))?;
                file.write_all_at(bytes, offset).and_then(|()| file.sync_all()).map_err(io(name))
            }
            Given::Made(disk, words) => {
                let words: Vec<&str> = words.split(' ').collect();
                let device = at(disk).display().to_string();
                let arguments: Vec<&str> =
                    words[1..].iter().copied().chain([device.as_str()]).collect();
                tool(words[0], &arguments).map(drop)
            }
            Given::Partitions(name) => {
                let file = File::options().write(true).open(at(name)).map_err(io(name))?;
                write_table(&file).map_err(io(name))
            }
            Given::Partitioned(name, partition) => {
                let image = self.here().join(format!("{name}.img"));
                let file = File::create(&image).map_err(io(name))?;
                file.set_len(DISK).and_then(|()| write_table(&file)).map_err(io(name))?;
                self.attach(name, &image, &["--partscan"])?;
                self.add_partition(name, partition)
            }
            Given::Mounted(name, disk) => {
                fs::create_dir(at(name)).map_err(io(name))?;
                self.mount(name, &["-o", "ro,noload", &at(disk).display().to_string()])
            }
            Given::MountedElsewhere(disk) => self.mount_elsewhere(disk),
            Given::Tmpfs(name, size) => {
                fs::create_dir(at(name)).map_err(io(name))?;
                self.mount(name, &["-t", "tmpfs", "-o", &format!("size={size}"), "halfpower-test"])
            }
            Given::Ext4(name) => {
                let beside = memory_directory();
                let image = shown(&beside.path().join("image"));
                File::create(&image).and_then(|image| image.set_len(DISK)).map_err(io(name))?;
                tool("mkfs.ext4", &["-q", "-F", "-m", "0", &image])?;
                fs::create_dir(at(name)).map_err(io(name))?;
                self.props.push(Prop::Directory(beside));
                self.mount(name, &["-o", "loop", &image])
            }
            Given::ReadOnly(name) => {
                tool("mount", &["-o", "remount,ro", &shown(&at(name))]).map(drop)
            }
            Given::Full(name) => {
                let mut ballast = File::create(at(name).join("ballast")).map_err(io(name))?;
                while ballast.write_all(&[7; 4096]).is_ok() {}
                Ok(())
            }
            Given::Volume(name, words) => {
                fs::create_dir(at(name)).map_err(io(name))?;
                let words = self.word(words).into_string().expect("plain words");
                self.mount(name, &words.split(' ').collect::<Vec<_>>())
            }
            Given::BoundOver(name, over) => {
                let (name, over) = (at(name), at(over));
                tool("mount", &["--bind", &shown(&name), &shown(&over)])?;
                self.props.push(Prop::Mount(over));
                Ok(())
            }
            Given::Shell(line) => {
                tool("sh", &["-c", &format!("cd '{}' && {line}", shown(self.here()))]).map(drop)
            }
            Given::LazilyUnmounted(name) => {
                tool("umount", &["--lazy", &shown(&at(name))]).map(drop)
            }
            Given::Faulty(name, faults) => {
                fs::create_dir(at(name)).map_err(io(name))?;
                let faulty = FaultyFs::mount(&at(name))?;
                faulty.set(faults);
                self.props.push(Prop::Faulty(name, faulty));
                Ok(())
            }
            Given::Faults(name, faults) => {
                self.faulty(name).set(faults);
                Ok(())
            }
            Given::FaultyFile(name, file) => {
                self.faulty(name).put(file, data(file));
                Ok(())
            }
            Given::Length(name, bytes) => {
                let file = File::options().write(true).open(at(name)).map_err(io(name))?;
                file.set_len(bytes).map_err(io(name))
            }
            Given::TestFileReplaced(name, by) => {
                let made = test_files(&at(name));
                let [made] = made.as_slice() else {
                    return Err(format!("{name}: one test file, not {made:?}"));
                };
                fs::remove_file(made).and_then(|()| symlink(at(by), made)).map_err(io(name))
            }
            Given::Released(name) => {
                self.faulty(name).release();
                Ok(())
            }
            Given::Group(name, limit) => {
                let group = make_group(limit)?;
                self.devices.insert(name, shown(&group));
                self.props.push(Prop::Group(group));
                Ok(())
            }
            Given::Owned(name, user) => lchown(at(name), Some(user), Some(user)).map_err(io(name)),
            Given::Replaced(name, by) => {
                fs::rename(at(name), at(&format!("{name}.was"))).map_err(io(name))?;
                symlink(at(by), at(name)).map_err(io(name))
            }
            Given::Socket(name) => UnixListener::bind(at(name)).map(drop).map_err(io(name)),
            Given::Unheld => {
                self.props.retain(|prop| !matches!(prop, Prop::Process(_)));
                Ok(())
            }
            Given::Locked(name, user) => {
                let id = format!("--reuid={user}");
                let script = "exec 9<\"$0\"; flock --shared 9 && echo && exec sleep 1000";
                let mut holder = Command::new("setpriv")
                    .args([&id, "--clear-groups", "sh", "-c", script])
                    .arg(at(name))
                    .stdout(Stdio::piped())
                    .spawn()
                    .map_err(io("setpriv"))?;
                let locked = holder
                    .stdout
                    .take()
                    .expect("piped")
                    .read(&mut [0])
                    .is_ok_and(|bytes| bytes == 1);
                self.props.push(Prop::Process(holder));
                if locked { Ok(()) } else { Err(format!("{name}: no lock")) }
            }
            Given::Mode(name, mode) => {
                fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).map_err(io(name))
            }
        }
    }

    fn attach(&mut self, name: &'static str, file: &Path, options: &[&str]) -> Result<(), String> {
        let file = shown(file);
        let device = tool("losetup", &[&["--find", "--show"], options, &[file.as_str()]].concat())?;
        self.props.push(Prop::Loop(device.clone()));
        self.devices.insert(name, device);
        Ok(())
    }

    /// Returns the device of a disk's only partition: not every kernel reads the table by itself.
    fn add_partition(&mut self, disk: &'static str, name: &'static str) -> Result<(), String> {
        let disk = self.devices[disk].clone();
        let device = format!("{disk}p1");
        let (first, sectors) = (PARTITION / 512, (DISK - PARTITION) / 512);
        if let Err(why) = tool("addpart", &[&disk, "1", &first.to_string(), &sectors.to_string()])
            && !Path::new(&device).exists()
        {
            return Err(why);
        }
        self.props.push(Prop::Partition(disk));
        wait_until("the partition's node", || Path::new(&device).exists());
        self.devices.insert(name, device);
        Ok(())
    }

    /// Keeps the images outside the stage's directory, which is compared after each line.
    fn mount_btrfs(&mut self, name: &'static str, second: &'static str) -> Result<(), String> {
        let beside = memory_directory();
        let directory = beside.path().to_owned();
        self.props.push(Prop::Directory(beside));
        let mut devices = Vec::new();
        for member in ["first", "second"] {
            let image = directory.join(member);
            let made = File::create(&image).and_then(|image| image.set_len(128 * MIB));
            made.map_err(|error| format!("{}: {error}", image.display()))?;
            let device = tool("losetup", &["--find", "--show", &shown(&image)])?;
            self.props.push(Prop::Loop(device.clone()));
            devices.push(device);
        }
        tool("mkfs.btrfs", &["-q", "-f", &devices[0], &devices[1]])?;
        fs::create_dir(self.path(name)).map_err(|error| format!("{name}: {error}"))?;
        self.mount(name, &["-t", "btrfs", &devices[0]])?;
        self.devices.insert(second, devices.remove(1));
        Ok(())
    }

    fn mount(&mut self, name: &'static str, arguments: &[&str]) -> Result<(), String> {
        let at = self.here().join(name);
        let place = shown(&at);
        tool("mount", &[arguments, &[place.as_str()]].concat())?;
        self.props.push(Prop::Mount(at));
        Ok(())
    }

    fn mount_elsewhere(&mut self, disk: &str) -> Result<(), String> {
        let disk = shown(&self.path(disk));
        self.elsewhere(
            "mount -o ro,noload \"$0\" \"$1\" && echo mounted && exec sleep infinity",
            &[&disk],
        )
        .map(drop)
    }

    /// Starts a script in its own mount namespace; it waits at the end. Returns its first line.
    fn elsewhere(&mut self, script: &str, words: &[&str]) -> Result<String, String> {
        let place = memory_directory();
        let mut holder = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script])
            .args(words)
            .arg(place.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("unshare: {error}"))?;
        let mut line = String::new();
        let read = BufReader::new(holder.stdout.take().expect("piped")).read_line(&mut line);
        // Removing the directory also unmounts it.
        self.props.push(Prop::Directory(place));
        self.props.push(Prop::Process(holder));
        match read {
            Ok(bytes) if bytes > 0 => Ok(line.trim().to_owned()),
            _ => Err("no mount namespace of its own".into()),
        }
    }

    pub fn remember(&mut self) {
        self.before = self.look();
    }

    pub fn changed(&self) -> Vec<String> {
        let now = self.look();
        let names =
            self.before.keys().chain(now.keys().filter(|name| !self.before.contains_key(*name)));
        let changed = names.filter(|name| self.before.get(*name) != now.get(*name));
        let mut changed: Vec<String> =
            changed.map(|name| name.to_string_lossy().into_owned()).collect();
        // The runs that a command keeps for --resume are its own, and `resume.rs` tests them.
        let kept = |name: &String| name.starts_with("state/unfinished");
        let any_kept = now.keys().any(|name| kept(&name.to_string_lossy().into_owned()));
        let other = |name: &String| name.starts_with("state/") && !kept(name);
        let only_kept = any_kept && !changed.iter().any(other);
        changed.retain(|name| !(kept(name) || only_kept && name == "state"));
        changed
    }

    pub fn setting(&self, disk: &str, setting: &str) -> Option<String> {
        let device = self.devices.get(disk)?.strip_prefix("/dev/")?;
        let file = Path::new("/sys/class/block").join(device).join("queue").join(setting);
        Some(fs::read_to_string(file).ok()?.trim().to_owned())
    }

    fn look(&self) -> BTreeMap<OsString, Seen> {
        let mut seen = BTreeMap::new();
        self.look_into(self.here(), OsStr::new(""), &mut seen);
        for disk in self.devices.keys() {
            for setting in SETTINGS {
                if let Some(value) = self.setting(disk, setting) {
                    let name = format!("{disk}/queue/{setting}");
                    let content = hash_of(value.as_bytes());
                    seen.insert(name.into(), Seen { mode: 0, inode: 0, rdev: 0, content });
                }
            }
        }
        for prop in &self.props {
            // A system call might hang.
            if let Prop::Faulty(name, faulty) = prop {
                for file in faulty.names() {
                    let content = hash_of(&faulty.content(&file).unwrap_or_default());
                    let name = format!("{name}/{file}");
                    seen.insert(name.into(), Seen { mode: 0, inode: 0, rdev: 0, content });
                }
            }
        }
        seen
    }

    fn look_into(&self, directory: &Path, prefix: &OsStr, seen: &mut BTreeMap<OsString, Seen>) {
        let is_faulty = |path: &Path| {
            self.props
                .iter()
                .any(|prop| matches!(prop, Prop::Faulty(name, _) if self.here().join(name) == path))
        };
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if is_faulty(&path) {
                continue;
            }
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            let kind = metadata.file_type();
            let content = match () {
                () if kind.is_symlink() => {
                    hash_of(fs::read_link(&path).unwrap_or_default().as_os_str().as_bytes())
                }
                () if kind.is_file() => hash_of(&fs::read(&path).unwrap_or_default()),
                // A device is compared through its file.
                () => 0,
            };
            let mut name = prefix.to_owned();
            name.push(entry.file_name());
            let is_node = kind.is_block_device() || kind.is_char_device();
            let rdev = if is_node { metadata.rdev() } else { 0 };
            seen.insert(
                name.clone(),
                Seen { mode: metadata.mode(), inode: metadata.ino(), rdev, content },
            );
            // lost+found belongs to ext4.
            if kind.is_dir() && entry.file_name() != "lost+found" {
                name.push("/");
                self.look_into(&path, &name, seen);
            }
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn data(name: &str) -> Vec<u8> {
    name.bytes().cycle().take(MIB as usize).collect()
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

pub fn test_files(directory: &Path) -> Vec<PathBuf> {
    crate::common::test_files(directory).into_iter().map(|name| directory.join(name)).collect()
}

#[test]
fn leftovers_of_killed_tests_are_removed() {
    // The first one sweeps: another test's first would take what follows.
    drop(memory_directory());
    let mut gone = Command::new("true").spawn().unwrap();
    let process = gone.id();
    gone.wait().unwrap();
    let left = Path::new("/dev/shm").join(format!("halfpower-test-{process}-left"));
    let (memory, faulty) = (left.join("memory"), left.join("faulty"));
    if let Err(why) = [&left, &memory, &faulty].iter().try_for_each(fs::create_dir) {
        return skip(&format!("{}: {why}", left.display()));
    }
    or_skip!(tool("mount", &["-t", "tmpfs", "halfpower-test", &shown(&memory)]));
    fs::write(memory.join("disk"), [0; 4096]).unwrap();
    let device = or_skip!(tool("losetup", &["--find", "--show", &shown(&memory.join("disk"))]));
    let served = or_skip!(FaultyFs::mount(&faulty));
    // The server does not answer this request.
    served.set(&[Fault { asked: Asked::Create, from: 0, instead: Instead::Hang }]);
    std::mem::forget(served);
    sweep();
    assert!(!left.exists());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(&shown(&left)), "{mounts}");
    wait_until("the loop device to go", || {
        tool("losetup", &["--list", &device]).map_or(true, |list| !list.contains(&shown(&left)))
    });
}
