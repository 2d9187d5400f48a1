//! Commands and loop devices for tests on the real kernel; skips tests if these are missing.

#![allow(dead_code, reason = "each test program uses a part")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn skip(why: &str) {
    assert!(
        std::env::var("HALFPOWER_REQUIRE").as_deref() != Ok("all"),
        "required, and not possible: {why}"
    );
    eprintln!("skipped: {why}");
}

pub fn run(command: &str, arguments: &[&str]) -> Result<String, String> {
    let done = Command::new(command)
        .args(arguments)
        .output()
        .map_err(|error| format!("{command}: {error}"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned()),
        false => Err(format!(
            "{command} {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&done.stderr).trim()
        )),
    }
}

pub struct Loop {
    pub directory: tempfile::TempDir,
    pub device: PathBuf,
    pub mounted: Option<PathBuf>,
}

impl Loop {
    pub fn new_in(place: impl AsRef<Path>, bytes: u64) -> Result<Self, String> {
        let directory = tempfile::tempdir_in(place).map_err(|error| error.to_string())?;
        let file = directory.path().join("medium");
        File::create(&file)
            .and_then(|file| file.set_len(bytes))
            .map_err(|error| error.to_string())?;
        let device = run("losetup", &["--find", "--show", &file.display().to_string()])?.into();
        Ok(Loop { directory, device, mounted: None })
    }

    pub fn file(&self) -> PathBuf {
        self.directory.path().join("medium")
    }

    pub fn name(&self) -> String {
        self.device.file_name().unwrap().to_string_lossy().into_owned()
    }

    pub fn shown(&self) -> String {
        self.device.display().to_string()
    }

    pub fn mount(&mut self) -> Result<PathBuf, String> {
        let point = self.directory.path().join("mounted here");
        std::fs::create_dir(&point).map_err(|error| error.to_string())?;
        run("mount", &[&self.shown(), &point.display().to_string()])?;
        self.mounted = Some(point.clone());
        Ok(point)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if let Some(point) = &self.mounted {
            let _ = run("umount", &[&point.display().to_string()]);
        }
        let _ = run("losetup", &["--detach", &self.shown()]);
    }
}
