//! Control groups of the stage.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// Bytes of memory.
    Memory(u64),
    Processes(u32),
    /// The share of one processor's time in percent.
    Processor(u32),
    /// No limit: the group can only be frozen.
    Frozen,
}

type Texts = Vec<(&'static str, String)>;

impl Limit {
    /// Returns the controller, then the files and texts for version 1 and for version 2.
    fn files(self) -> (&'static str, Texts, Texts) {
        match self {
            Limit::Frozen => ("freezer", Vec::new(), Vec::new()),
            Limit::Memory(bytes) => (
                "memory",
                vec![("memory.limit_in_bytes", bytes.to_string())],
                vec![("memory.max", bytes.to_string()), ("memory.swap.max", "0".into())],
            ),
            Limit::Processes(max) => {
                let file = vec![("pids.max", max.to_string())];
                ("pids", file.clone(), file)
            }
            Limit::Processor(percent) => (
                "cpu",
                vec![
                    ("cpu.cfs_period_us", "100000".into()),
                    ("cpu.cfs_quota_us", (percent * 1000).to_string()),
                ],
                vec![("cpu.max", format!("{} 100000", percent * 1000))],
            ),
        }
    }
}

pub(super) fn make_group(limit: Limit) -> Result<PathBuf, String> {
    static GROUPS: AtomicU32 = AtomicU32::new(0);
    let name =
        format!("halfpower-test-{}-{}", std::process::id(), GROUPS.fetch_add(1, Ordering::Relaxed));
    let (controller, first, second) = limit.files();
    let mounts = fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
    let mount = |wanted: &dyn Fn(&str, &str) -> bool| {
        mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            wanted(fields[2], fields[3]).then(|| PathBuf::from(fields[1]))
        })
    };
    let old =
        mount(&|kind, options| kind == "cgroup" && options.split(',').any(|one| one == controller));
    let (root, settings) = match (old, mount(&|kind, _| kind == "cgroup2")) {
        (Some(root), _) => (root, first),
        (None, Some(root)) => {
            // It may already be enabled. If it cannot be, the settings below fail.
            let _ = fs::write(root.join("cgroup.subtree_control"), format!("+{controller}"));
            (root, second)
        }
        (None, None) => return Err("no control groups are mounted".into()),
    };
    let group = root.join(name);
    fs::create_dir(&group).map_err(|error| format!("{}: {error}", group.display()))?;
    for (file, value) in settings {
        if let Err(error) = fs::write(group.join(file), value) {
            let _ = fs::remove_dir(&group);
            return Err(format!("{}: {error}", group.join(file).display()));
        }
    }
    Ok(group)
}
