use super::{IdleBaseline, tick_ns};
use crate::linux::clock::kernel_now;
use crate::linux::facts::Roots;
use machine::Nanos;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;

/// CPU time of every other program since it started.
///
/// Excludes kernel threads: their work may be ours (writeback of earlier writes), so it is not part
/// of a baseline.
pub struct OtherPrograms {
    at_ns: Nanos,
    ticks: HashMap<u32, u64>,
    tick_ns: Nanos,
}

impl OtherPrograms {
    /// Empty if `/proc` cannot be read.
    pub fn now(roots: &Roots) -> Self {
        let mut ticks = HashMap::new();
        let mut text = Vec::new();
        for name in files::entries(&roots.proc) {
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            text.clear();
            let read = File::open(roots.proc.join(name).join("stat"))
                .and_then(|mut file| file.read_to_end(&mut text));
            if pid != std::process::id() && read.is_ok() {
                ticks.extend(program_ticks(&text).map(|ticks| (pid, ticks)));
            }
        }
        Self { at_ns: kernel_now(), ticks, tick_ns: tick_ns() }
    }

    pub fn age_ns(&self) -> Nanos {
        kernel_now().saturating_sub(self.at_ns)
    }

    /// CPUs that the other programs used. Less than a tick's resolution counts as zero.
    pub fn since(&self, before: &OtherPrograms) -> IdleBaseline {
        let observed_ns = self.at_ns.saturating_sub(before.at_ns).max(1);
        // A program that started in between counts with all of its time; one that ended is missed.
        let used = |(pid, ticks): (&u32, &u64)| {
            ticks.saturating_sub(before.ticks.get(pid).copied().unwrap_or(0))
        };
        let used: u64 = self.ticks.iter().map(used).sum();
        let busy_ns = if used > 1 { used * self.tick_ns } else { 0 };
        IdleBaseline { busy_processors: busy_ns as f64 / observed_ns as f64, observed_ns }
    }
}

/// User and system, from `/proc/PID/stat` (proc(5)); `None` for a kernel thread.
fn program_ticks(stat: &[u8]) -> Option<u64> {
    const KERNEL_THREAD: u64 = 0x0020_0000;
    // The name is in parentheses and may contain any byte.
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let mut fields = stat[after_name..]
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|field| !field.is_empty());
    let mut number = |skip: usize| std::str::from_utf8(fields.nth(skip)?).ok()?.parse::<u64>().ok();
    // state ppid pgrp session tty_nr tpgid flags minflt cminflt majflt cmajflt utime stime.
    let flags = number(6)?;
    let ticks = number(4)? + number(0)?;
    (flags & KERNEL_THREAD == 0).then_some(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_threads_and_this_process_are_excluded() {
        let program = b"77 (a) b 1) S 1 1 1 0 -1 4194560 10 0 0 0 30 12 0 0 20 0 1 0 5 0 0";
        assert_eq!(program_ticks(program), Some(42));
        let thread = b"78 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 900 0 0 20 0 1 0 5 0 0";
        assert_eq!(program_ticks(thread), None);
        assert_eq!(program_ticks(b"79 (short) S 1"), None);
        let at = |at_ns, ticks: &[(u32, u64)]| OtherPrograms {
            at_ns,
            ticks: ticks.iter().copied().collect(),
            tick_ns: 10_000_000,
        };
        let before = at(0, &[(1, 100), (2, 50), (3, 7)]);
        let busy = |after: &[(u32, u64)]| at(1_000_000_000, after).since(&before).busy_processors;
        assert_eq!(busy(&[(1, 150), (2, 50), (4, 10)]), 0.6, "one went on, one began, one ended");
        assert_eq!(busy(&[(1, 101), (2, 50)]), 0.0, "a single tick is below the resolution");
        let own = OtherPrograms::now(&Roots::default());
        assert!(!own.ticks.contains_key(&std::process::id()) && !own.ticks.is_empty());
    }
}
