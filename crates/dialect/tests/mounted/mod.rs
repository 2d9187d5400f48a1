//! A small file system in memory.

use std::path::Path;
use std::process::Command;

pub struct Mounted(tempfile::TempDir);

impl Mounted {
    /// Returns `None`, with a message, if the user may not mount and it is not required.
    pub fn tmpfs(size: &str) -> Option<Mounted> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"])
            .arg(directory.path())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Mounted(directory));
        }
        assert_ne!(
            std::env::var("HALFPOWER_REQUIRE").as_deref(),
            Ok("all"),
            "this test mounts a small file system: run it as root"
        );
        eprintln!("skipped: mounting a small file system needs root");
        None
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}
