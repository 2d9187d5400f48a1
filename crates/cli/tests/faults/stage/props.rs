//! The resources of a stage, released at the end.

use crate::common::places::tool;
use crate::fuse::FaultyFs;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Child;
use tempfile::TempDir;

pub(super) enum Prop {
    Loop(String),
    Mount(PathBuf),
    Faulty(&'static str, FaultyFs),
    Process(Child),
    Directory(#[allow(dead_code)] TempDir),
    Partition(String),
    Group(PathBuf),
    Swap(String),
    Zram(String),
    Held(#[allow(dead_code)] File),
}

impl Drop for Prop {
    fn drop(&mut self) {
        match self {
            Prop::Loop(device) => drop(tool("losetup", &["--detach", device])),
            Prop::Mount(at) => {
                let at = at.display().to_string();
                if tool("umount", &[&at]).is_err() {
                    let _ = tool("umount", &["--lazy", &at]);
                }
            }
            Prop::Faulty(..) | Prop::Directory(_) | Prop::Held(_) => {}
            Prop::Swap(place) => drop(tool("swapoff", &[place])),
            Prop::Zram(number) => drop(fs::write("/sys/class/zram-control/hot_remove", number)),
            Prop::Partition(disk) => drop(tool("delpart", &[disk, "1"])),
            Prop::Group(group) => {
                // The kernel may still be removing exited processes from the group.
                let gone = || fs::remove_dir(&*group).is_ok();
                for _ in 0..200 {
                    if gone() {
                        break;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
            }
            Prop::Process(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}
