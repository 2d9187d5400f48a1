//! Processes and threads that exist at the start.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn with_children(process: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut left = vec![process];
    while let Some(process) = left.pop() {
        if found.insert(process) {
            for thread in threads(process) {
                let children = format!("/proc/{process}/task/{thread}/children");
                let children = fs::read_to_string(children).unwrap_or_default();
                left.extend(
                    children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()),
                );
            }
        }
    }
    found
}

pub(super) fn threads(process: u32) -> Vec<i32> {
    ::files::entries(Path::new(&format!("/proc/{process}/task")))
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

pub(super) fn of_group(group: &Path) -> std::io::Result<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    let mut left: Vec<PathBuf> = vec![group.to_path_buf()];
    let mut is_first = true;
    while let Some(group) = left.pop() {
        let list = fs::read_to_string(group.join("cgroup.procs"));
        // A group below may go at any time.
        let list = if is_first { list? } else { list.unwrap_or_default() };
        is_first = false;
        found.extend(list.split_whitespace().filter_map(|process| process.parse::<u32>().ok()));
        left.extend(
            ::files::entries(&group).map(|name| group.join(name)).filter(|path| path.is_dir()),
        );
    }
    Ok(found)
}
