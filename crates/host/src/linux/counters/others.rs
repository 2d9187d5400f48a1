use super::{IdleBaseline, tick_ns};
use crate::linux::clock::kernel_now;
use crate::linux::facts::Roots;
use machine::Nanos;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;

/// Without kernel threads, which may do our work.
pub struct OtherPrograms {
    at_ns: Nanos,
    ticks: HashMap<u32, u64>,
    tick_ns: Nanos,
}

impl OtherPrograms {
    /// Omits `own`; empty if `/proc` cannot be read.
    pub fn now(roots: &Roots, own: &[u32]) -> Self {
        let mut ticks = HashMap::new();
        // The longest line: some 52 numbers and a name.
        let mut text = [0; 2048];
        for name in files::entries(&roots.proc) {
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            if own.contains(&pid) {
                continue;
            }
            let read = File::open(roots.proc.join(name).join("stat"))
                .and_then(|mut file| file.read(&mut text));
            if let Ok(length) = read {
                ticks.extend(program_ticks(&text[..length]).map(|ticks| (pid, ticks)));
            }
        }
        Self { at_ns: kernel_now(), ticks, tick_ns: tick_ns() }
    }

    pub fn age_ns(&self) -> Nanos {
        kernel_now().saturating_sub(self.at_ns)
    }

    /// 0 if below a tick's resolution.
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

#[derive(Debug, Clone, PartialEq)]
pub struct BusyProgram {
    pub name: String,
    pub processors: f64,
    /// From and to storage; only root sees other users' programs.
    pub storage_bytes_per_s: f64,
}

const BUSY_PROCESSORS: f64 = 0.1;

const BUSY_BYTES_PER_S: f64 = 1e6;

/// The busiest first, one entry per name.
pub fn busy_programs(roots: &Roots, watch: std::time::Duration) -> Vec<BusyProgram> {
    let look = || (OtherPrograms::now(roots, &[std::process::id()]), storage_bytes(roots));
    let (before, bytes_before) = look();
    std::thread::sleep(watch);
    let (after, bytes_after) = look();
    let seconds = after.at_ns.saturating_sub(before.at_ns).max(1) as f64 / 1e9;
    let mut busy: Vec<BusyProgram> = Vec::new();
    for (pid, ticks) in &after.ticks {
        // A program that began meanwhile may have ended its work.
        let Some(ticks_before) = before.ticks.get(pid) else { continue };
        let used = ticks.saturating_sub(*ticks_before);
        let bytes = |of: &HashMap<u32, u64>| of.get(pid).copied();
        let moved = bytes(&bytes_after).zip(bytes(&bytes_before));
        let moved = moved.map_or(0, |(now, then)| now.saturating_sub(then));
        if used == 0 && moved == 0 {
            continue;
        }
        let name = std::fs::read(roots.proc.join(pid.to_string()).join("comm"));
        let name = String::from_utf8_lossy(&name.unwrap_or_default()).trim().to_owned();
        let processors = (used * after.tick_ns) as f64 / 1e9 / seconds;
        let storage_bytes_per_s = moved as f64 / seconds;
        match busy.iter_mut().find(|known| known.name == name) {
            Some(known) => {
                known.processors += processors;
                known.storage_bytes_per_s += storage_bytes_per_s;
            }
            None => busy.push(BusyProgram { name, processors, storage_bytes_per_s }),
        }
    }
    busy.retain(|one| {
        one.processors > BUSY_PROCESSORS || one.storage_bytes_per_s > BUSY_BYTES_PER_S
    });
    busy.sort_by(|a, b| {
        let share = |one: &BusyProgram| one.processors + one.storage_bytes_per_s / 1e9;
        share(b).total_cmp(&share(a))
    });
    busy
}

fn storage_bytes(roots: &Roots) -> HashMap<u32, u64> {
    let of = |name: &std::ffi::OsString| {
        let pid: u32 = name.to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(roots.proc.join(name).join("io")).ok()?;
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
        };
        Some((pid, field("read_bytes:")? + field("write_bytes:")?))
    };
    files::entries(&roots.proc).filter_map(|name| of(&name)).collect()
}

/// Parses `/proc/PID/stat` (proc(5)).
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
    fn a_busy_program_is_named() {
        // Under another name, so that other programs do not count.
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("spins");
        std::fs::copy("/bin/sh", &program).unwrap();
        let mut busy = std::process::Command::new(&program)
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let named = || {
            let found = busy_programs(&Roots::default(), std::time::Duration::from_millis(400));
            found.into_iter().find(|one| one.name == "spins")
        };
        let found = named();
        busy.kill().unwrap();
        busy.wait().unwrap();
        let found = found.expect("it uses a CPU, or a share of one");
        assert!((0.1..=1.2).contains(&found.processors), "{found:?}");
        assert_eq!(named(), None, "it has ended");
    }

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
        let seen = |own: &[u32]| OtherPrograms::now(&Roots::default(), own).ticks;
        assert!(!seen(&[std::process::id()]).contains_key(&std::process::id()));
        assert!(seen(&[]).contains_key(&std::process::id()));
    }
}
