//! Facts from the kernel's file systems below [`Roots`]: a recorded tree works as well.

mod block;
mod computer;
mod dirty;
mod extents;
mod file_system;
mod foreseen;
mod in_use;
mod layers;
mod link;
mod loops;
mod mounts;
mod recorded;
mod same_data;
mod signature;
mod temperature;
mod throttle;
mod topology;
mod wear;

pub(crate) use block::directory as device_directory;
pub(crate) use block::disk_of_partition;
pub use computer::{machine_facts, memory_bytes, page_bytes};
pub(crate) use computer::{memory_left, own_limit_left};
pub(crate) use dirty::DirtyWatch;
pub(crate) use extents::largest as largest_extent;
pub use foreseen::foreseen;
pub use in_use::{device_in_use, holders};
pub(crate) use in_use::{users, uses};
pub(crate) use layers::join;
pub use layers::{
    BlockDevice, BlockDevices, Under, block_devices_of, layers_under, under, under_device,
};
pub(crate) use mounts::mount_on;
pub use mounts::{Mount, mount_at, mount_of, mount_of_file};
pub(crate) use same_data::Namespaces;
pub use same_data::is_same_data;
pub use signature::signature;
pub(crate) use temperature::celsius;
pub use throttle::cgroup_v1_root;
pub(crate) use throttle::{pressure_files, processor_counts};
pub use topology::{Topology, topology};
pub(crate) use wear::wear;

use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    pub proc: PathBuf,
    pub sys: PathBuf,
    pub dev: PathBuf,
    /// Recorded file system calls; `None` makes them on this machine.
    pub calls: Option<PathBuf>,
}

impl Default for Roots {
    fn default() -> Self {
        Self { proc: "/proc".into(), sys: "/sys".into(), dev: "/dev".into(), calls: None }
    }
}

impl Roots {
    /// Of a recorded machine; `calls` has statvfs and FIEMAP results by path (`block_bytes=4096
    /// blocks=100 available=40 extents=3 /var/a file`).
    pub fn below(dir: &Path) -> Self {
        Self {
            proc: dir.join("proc"),
            sys: dir.join("sys"),
            dev: dir.join("dev"),
            calls: Some(dir.join("calls")),
        }
    }

    fn is_this_machine(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn resolve(&self, path: &Path) -> PathBuf {
        for (root, name) in [(&self.proc, "/proc"), (&self.sys, "/sys"), (&self.dev, "/dev")] {
            if let Ok(rest) = path.strip_prefix(name) {
                return root.join(rest);
            }
        }
        path.to_path_buf()
    }
}

pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn number(path: impl AsRef<Path>) -> Option<u64> {
    text(path)?.parse().ok()
}

/// Returns the bracketed choice (`none [mq-deadline] kyber`), or the whole text.
pub(crate) fn chosen(list: &str) -> &str {
    match (list.find('['), list.find(']')) {
        (Some(from), Some(to)) if from < to => &list[from + 1..to],
        _ => list,
    }
}

fn link_name(path: impl AsRef<Path>) -> Option<String> {
    Some(std::fs::read_link(path).ok()?.file_name()?.to_string_lossy().into_owned())
}

pub(crate) fn names(dir: impl AsRef<Path>) -> Vec<String> {
    let mut names: Vec<String> =
        files::entries(dir.as_ref()).map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_of_a_list() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("write back"), "write back");
        assert_eq!(chosen("]["), "][");
    }

    #[test]
    fn the_machines_paths_below_other_roots() {
        let roots = Roots::below(Path::new("/tmp/x"));
        assert_eq!(roots.resolve(Path::new("/sys/fs/cgroup")), Path::new("/tmp/x/sys/fs/cgroup"));
        assert_eq!(roots.resolve(Path::new("/system")), Path::new("/system"));
    }
}
