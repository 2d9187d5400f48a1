//! `run --live`: a line for every second, on standard error.

use crate::console::Console;
use crate::failure::Failure;
use machine::units::{rate_number, show_in, show_time, shown_in};
use measure::live::SecondLog;
use results::SecondRecord;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(100);

/// Streams count a second within this after the first unless they wait for the storage.
const SETTLED: Duration = Duration::from_millis(200);

const HEADING_EVERY: usize = 20;

pub(crate) struct Live {
    log: Arc<SecondLog>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    pub(crate) fn start(console: &Console) -> Live {
        let log = Arc::<SecondLog>::default();
        let ended = Arc::new(AtomicBool::new(false));
        let (from, until, console) = (log.clone(), ended.clone(), console.clone());
        let units = shown_in();
        let thread = std::thread::Builder::new().name("live".into());
        let thread = thread
            .spawn(move || {
                let _units = show_in(units);
                follow(&console, &from, &until);
            })
            .ok();
        Live { log, ended, thread }
    }

    pub(crate) fn log(&self) -> Arc<SecondLog> {
        self.log.clone()
    }

    pub(crate) fn end(mut self) -> Vec<SecondRecord> {
        self.stop();
        self.log.after(0).iter().map(SecondRecord::from).collect()
    }

    fn stop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.stop();
    }
}

fn follow(console: &Console, log: &SecondLog, ended: &AtomicBool) {
    let mut printed = 0;
    loop {
        let last = ended.load(Ordering::Relaxed);
        for one in log.after(printed) {
            if !last && one.finished.elapsed() < SETTLED {
                break;
            }
            let heading = printed % HEADING_EVERY == 0;
            printed += 1;
            console.suspended(|| print(&SecondRecord::from(&one), heading));
        }
        if last {
            return;
        }
        std::thread::sleep(TICK);
    }
}

fn print(one: &SecondRecord, heading: bool) {
    let mut err = std::io::stderr().lock();
    // Standard error may be closed.
    if heading {
        let _ = writeln!(err, "{}", heading_line());
    }
    let _ = writeln!(err, "{}", line(one));
}

fn heading_line() -> String {
    let rate = shown_in().rate_unit();
    format!(
        "{:>4} {:>6} {rate:>9} {:>9} {:>9} {:>9} {:>9} {:>7}",
        "run", "second", "IOPS", "p50", "p99", "p99.9", "depth"
    )
}

fn line(one: &SecondRecord) -> String {
    let time = |ns: u64| show_time(ns as f64);
    format!(
        "{:>4} {:>6} {:>9} {:>9.0} {:>9} {:>9} {:>9} {:>7.1}",
        one.run + 1,
        one.second + 1,
        rate_number(one.throughput_bytes_per_s),
        one.iops,
        time(one.latency_p50_ns),
        time(one.latency_p99_ns),
        time(one.latency_p999_ns),
        one.mean_depth
    )
}

pub(crate) fn refuse(live: bool, command: &str) -> Result<(), Failure> {
    if live {
        return Err(Failure::Usage(format!(
            "--live: {command} measures many points; only halfpower run of one workload shows its seconds"
        )));
    }
    Ok(())
}
