//! Other programs that would disturb a measurement.

use crate::context::Context;
use crate::failure::Failure;
use crate::interrupt;
use clap::Args;
use host::counters::{BusyProgram, busy_programs};
use host::facts::Roots;
use machine::units::{parse_time, show_rate, show_time};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A scheduler tick counts as 10 ms.
const LOOK: Duration = Duration::from_millis(300);

const IDLE_LOOKS: u32 = 5;

const MAX_NAMED: usize = 4;

/// Options of commands that wait until the machine is idle.
#[derive(Args, Clone)]
pub(crate) struct LoadArguments {
    /// Wait until no other program uses the processors or storage, at most this long; then fail
    /// [default: do not wait, but name the busy programs; 10m without TIME]
    #[arg(long, value_name = "TIME", value_parser = parse_time, num_args = 0..=1, require_equals = true, default_missing_value = "10m")]
    wait_idle: Option<u64>,
}

impl LoadArguments {
    /// With `--wait-idle`, fails if programs stay busy.
    pub(crate) fn look(&self, context: &Context) -> Result<Option<String>, Failure> {
        let look = || busy_programs(&Roots::default(), LOOK);
        let Some(limit_ns) = self.wait_idle else {
            let busy = look();
            return Ok((!busy.is_empty()).then(|| {
                format!(
                    "busy at the start: {}: results may understate this machine; stop them, or use --wait-idle",
                    named(&busy)
                )
            }));
        };
        let (began, limit) = (Instant::now(), Duration::from_nanos(limit_ns));
        let (mut idle, mut announced) = (0, false);
        while idle < IDLE_LOOKS {
            let busy = look();
            if interrupt::flag().load(Ordering::Relaxed) {
                return Err(Failure::Interrupted);
            }
            idle = if busy.is_empty() { idle + 1 } else { 0 };
            if busy.is_empty() {
                continue;
            }
            if began.elapsed() >= limit {
                return Err(Failure::Run(format!(
                    "--wait-idle: still busy after {}: {}; stop them, or wait longer",
                    show_time(limit_ns as f64),
                    named(&busy)
                )));
            }
            if !std::mem::replace(&mut announced, true) {
                context.console.tell(&format!("waiting for {}", named(&busy)));
            }
        }
        Ok(None)
    }
}

fn named(busy: &[BusyProgram]) -> String {
    let each = busy.iter().take(MAX_NAMED).map(|one| {
        let mut uses = Vec::new();
        if one.processors >= 0.05 {
            uses.push(format!("{:.1} CPUs", one.processors));
        }
        if one.storage_bytes_per_s >= 1e5 {
            uses.push(show_rate(one.storage_bytes_per_s));
        }
        format!("{} ({})", one.name, uses.join(", "))
    });
    let each: Vec<String> = each.collect();
    match busy.len().saturating_sub(MAX_NAMED) {
        0 => each.join(", "),
        more => format!("{} and {more} more", each.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_with_what_they_use() {
        let program = |name: &str, processors, storage_bytes_per_s| BusyProgram {
            name: name.into(),
            processors,
            storage_bytes_per_s,
        };
        let busy = [program("postgres", 0.9, 0.0), program("rsync", 0.12, 1048576.0 * 120.0)];
        assert_eq!(named(&busy), "postgres (0.9 CPUs), rsync (0.1 CPUs, 120 MiB/s)");
        let many: Vec<BusyProgram> = (0..6).map(|_| program("yes", 1.0, 0.0)).collect();
        assert!(named(&many).ends_with("yes (1.0 CPUs) and 2 more"), "{}", named(&many));
    }
}
