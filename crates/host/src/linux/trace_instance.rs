//! Our own instances (Documentation/trace/ftrace.rst, "Instances"): events go to their buffers
//! only, and other users of tracing keep their settings.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const INSTANCES: [&str; 2] =
    ["/sys/kernel/tracing/instances", "/sys/kernel/debug/tracing/instances"];

const NAME: &str = "halfpower-";

/// Only our instances have these filters: the name is not enough to remove one.
pub(crate) const MARKS: [(&str, &str); 4] = [
    ("block/block_bio_queue", "dev == "),
    ("block/block_rq_issue", "dev == "),
    ("block/block_rq_complete", "dev == "),
    ("syscalls/sys_enter_sync", RECORDING),
];

/// Every event passes: the text only marks an instance. The kernel gives a filter at the first
/// reading only, of 32 bytes.
pub(crate) const RECORDING: &str = "common_preempt_count >= 0";

pub(crate) fn instances() -> Option<PathBuf> {
    INSTANCES.iter().map(PathBuf::from).find(|dir| dir.is_dir())
}

pub(crate) fn permitted() -> bool {
    instances().is_some_and(|dir| rustix::fs::access(&dir, rustix::fs::Access::WRITE_OK).is_ok())
}

pub(crate) struct TraceInstance {
    dir: PathBuf,
}

impl TraceInstance {
    /// Sets the monotonic clock, and removes killed processes' instances.
    pub(crate) fn new(buffer_kib: u32) -> io::Result<TraceInstance> {
        let parent = instances().ok_or(io::ErrorKind::NotFound)?;
        remove_stale(&parent);
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let dir = parent.join(format!("{NAME}{}-{number}", std::process::id()));
        fs::create_dir(&dir)?;
        let instance = TraceInstance { dir };
        // The same clock that halfpower's is compared with.
        instance.set("trace_clock", "mono")?;
        instance.set("buffer_size_kb", &buffer_kib.to_string())?;
        Ok(instance)
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    pub(crate) fn set(&self, file: &str, value: &str) -> io::Result<()> {
        fs::write(self.path(file), value)
    }
}

impl Drop for TraceInstance {
    fn drop(&mut self) {
        remove(&self.dir);
    }
}

/// They would trace forever.
pub(crate) fn remove_stale(parent: &Path) {
    for name in files::entries(parent) {
        let dir = parent.join(&name);
        let process = name.to_str().and_then(|name| {
            let rest = name.strip_prefix(NAME)?;
            rest.split('-').next()?.parse::<u32>().ok()
        });
        let is_dead =
            process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists());
        let is_marked = |(event, mark): (&str, &str)| {
            fs::read_to_string(dir.join(format!("events/{event}/filter")))
                .is_ok_and(|text| text.starts_with(mark))
        };
        if is_dead && MARKS.into_iter().any(is_marked) {
            remove(&dir);
        }
    }
}

/// The kernel refuses while events are active.
pub(crate) fn remove(dir: &Path) {
    let _ = fs::write(dir.join("events/enable"), "0");
    let _ = fs::remove_dir(dir);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_instances_are_removed_only_with_our_filter() {
        let Some(parent) = instances().filter(|_| permitted()) else {
            assert!(
                std::env::var_os("HALFPOWER_REQUIRE").is_none(),
                "no trace instances: mount tracefs, as root"
            );
            return eprintln!("skipped: no trace instances");
        };
        // Beyond any process ID.
        let of = |name: &str| parent.join(format!("{NAME}{name}"));
        let all = [of("4294967295"), of("4294967295-1"), of("4294967294"), of("4294967295x")];
        for dir in &all {
            fs::create_dir(dir).unwrap();
        }
        let set = |dir: &Path, file: &str, value: &str| {
            fs::write(dir.join("events").join(file), value).unwrap();
        };
        for event in ["block_bio_queue", "block_rq_issue", "block_rq_complete"] {
            set(&all[0], &format!("block/{event}/filter"), "dev == 1048576");
            set(&all[0], &format!("block/{event}/enable"), "1");
        }
        set(&all[1], "syscalls/sys_enter_sync/filter", RECORDING);
        set(&all[1], "syscalls/sys_enter_sync/enable", "1");
        set(&all[2], "syscalls/sys_enter_sync/filter", "common_pid != 0");
        remove_stale(&parent);
        let left = all.each_ref().map(|dir| dir.exists());
        all.iter().for_each(|dir| remove(dir));
        assert_eq!(left, [false, false, true, true]);
    }
}
