//! Uses the kernel's trace points: no daemon, no kernel probe, and nothing left behind. One trace
//! instance has system calls of the recorded processes (the kernel follows their children), the
//! other requests of the block layer, which other threads complete.

mod calls;
mod child;
mod clock;
mod descriptors;
mod devices;
mod early;
mod error;
mod format;
mod given_names;
mod identity;
mod order;
mod pages;
mod pipes;
mod processes;
mod rings;
mod seen;
mod tracker;

pub use error::RecordError;

use super::trace_instance::{self, RECORDING, TraceInstance};
use apptrace::{Header, Summary, TraceWriter};
use child::StoppedChild;
use clock::TraceClock;
use given_names::NameReader;
use identity::Names;
use machine::Nanos;
use pipes::Pipes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use seen::{Decoder, Seen};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tracker::Tracker;

/// Per processor: about 200,000 events, a second of 100,000 requests/s.
const BUFFER_KIB: u32 = 16384;

/// Events may take this long to reach the buffer.
const SETTLE_NS: Nanos = 1_000_000;

/// Lets events gather, so that reading is cheap.
const REST: Duration = Duration::from_millis(1);

/// If file names do not depend on a look at descriptors.
const LONG_REST: Duration = Duration::from_millis(4);

/// Processor time beyond 2 % before the recorder rests.
const FREE_CPU_NS: Nanos = 5_000_000;

const MAX_TURN: Duration = Duration::from_millis(200);

const WAIT_NS: i64 = 50_000_000;

/// The command may end by itself in this time after Ctrl-C.
const PATIENCE: Duration = Duration::from_secs(10);

/// The kernel's own (include/linux/proc_ns.h, PROC_PID_INIT_INO).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

const PROCESS_EVENTS: [&str; 5] = [
    "task/task_newtask",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
    "filemap/mm_filemap_fault",
    "ext4/ext4_unlink_exit",
];

const SYSTEM_EVENTS: [&str; 5] = [
    "block/block_bio_queue",
    "block/block_rq_complete",
    "io_uring/io_uring_submit_req",
    "io_uring/io_uring_file_get",
    "io_uring/io_uring_complete",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Command(Vec<OsString>),
    /// With all its threads and children.
    Process(u32),
    ControlGroup(PathBuf),
    Device(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordOptions {
    pub at_most: Option<Duration>,
    /// Hashes names with a key that is thrown away.
    pub anonymous: bool,
    /// Name and version, for the header.
    pub source: String,
}

/// Removes instances of killed recorders.
pub fn remove_stale() {
    if let Some(parent) = trace_instance::instances().filter(|_| trace_instance::permitted()) {
        trace_instance::remove_stale(&parent);
    }
}

/// A recording ready to start; a command waits.
pub struct Recorder {
    pipes: Vec<Pipes>,
    decoder: Decoder,
    clock: TraceClock,
    /// `None` if not permitted: files closed at once may have no name.
    names: Option<NameReader>,
    processes: BTreeSet<u32>,
    child: Option<StoppedChild>,
    command: Vec<OsString>,
}

impl Recorder {
    /// Fails without trace points or permission.
    pub fn new(subject: &Subject) -> Result<Recorder, RecordError> {
        if let Subject::Device(device) = subject {
            return Recorder::of_device(device);
        }
        if fs::read_link("/proc/self/ns/pid").is_ok_and(|own| own.as_os_str() != FIRST_NAMESPACE) {
            return Err(RecordError::Namespace);
        }
        let instance = TraceInstance::new(BUFFER_KIB).map_err(RecordError::of_instance)?;
        let clock = TraceClock::choose(&instance);
        clock.set(&instance)?;
        let mut decoder = Decoder::default();
        let (mut events, places) = decoder.calls(&instance)?;
        for event in PROCESS_EVENTS {
            if decoder.other(&instance, event)? {
                events.push(event.to_owned());
            }
        }
        // Children that were started between the list and this setting are found by the next list.
        instance.set("options/event-fork", "1")?;
        let child = match subject {
            Subject::Command(words) => {
                let child = StoppedChild::start(words);
                Some(child.map_err(|error| RecordError::Command(words.clone(), error))?)
            }
            _ => None,
        };
        let list = || match subject {
            Subject::Command(_) => Ok(child.iter().map(|child| child.process).collect()),
            Subject::Process(process) => {
                fs::metadata(format!("/proc/{process}"))
                    .map_err(|error| RecordError::Process(*process, error))?;
                Ok(processes::with_children(*process))
            }
            Subject::ControlGroup(group) => processes::of_group(group)
                .map_err(|error| RecordError::ControlGroup(group.clone(), error)),
            Subject::Device(_) => Ok(BTreeSet::new()),
        };
        let mut followed = BTreeSet::new();
        loop {
            let processes = list()?;
            let threads: Vec<i32> =
                processes.iter().flat_map(|&process| processes::threads(process)).collect();
            let words: Vec<String> = threads.iter().map(i32::to_string).collect();
            instance.set("set_event_pid", &words.join(" "))?;
            if processes == followed {
                break;
            }
            followed = processes;
        }
        if followed.is_empty() {
            return Err(RecordError::NoProcesses);
        }
        // Marks the instance as ours.
        instance.set("events/syscalls/sys_enter_sync/filter", RECORDING)?;
        instance.set("buffer_percent", "0")?;
        let names: Vec<String> = events.iter().map(|event| event.replacen('/', ":", 1)).collect();
        instance.set("set_event", &names.join("\n"))?;
        let command = match subject {
            Subject::Command(words) => words.clone(),
            _ => Vec::new(),
        };
        let system = system_events(&mut decoder, clock, &SYSTEM_EVENTS, None)?;
        let pipes = vec![Pipes::open(instance)?, system];
        let names = NameReader::open(&places).ok();
        Ok(Recorder { pipes, decoder, clock, names, processes: followed, child, command })
    }

    fn of_device(path: &Path) -> Result<Recorder, RecordError> {
        let wrong = |error| RecordError::Device(path.to_owned(), error);
        let metadata = fs::metadata(path).map_err(wrong)?;
        if !metadata.file_type().is_block_device() {
            return Err(wrong(io::Error::other("it is not a block device")));
        }
        let number = metadata.rdev();
        let device = (rustix::fs::major(number), rustix::fs::minor(number));
        let mut decoder = Decoder::default();
        let clock = TraceClock::monotonic_clock();
        let system = system_events(&mut decoder, clock, &SYSTEM_EVENTS[..2], Some(device))?;
        let (processes, command) = (BTreeSet::new(), Vec::new());
        let pipes = vec![system];
        Ok(Recorder { pipes, decoder, clock, names: None, processes, child: None, command })
    }

    /// Until the command or processes end, the time is over, or `stop` is set.
    pub fn record<W: Write>(
        mut self,
        to: W,
        options: &RecordOptions,
        stop: &AtomicBool,
    ) -> Result<Summary, RecordError> {
        let names = Names::new(options.anonymous);
        let began = Instant::now();
        let start = now(ClockId::Monotonic);
        let cpu = now(ClockId::ThreadCPUTime);
        let writer = TraceWriter::new(to, &self.header(options))?;
        let mut tracker = Tracker::new(writer, start, names);
        if self.processes.is_empty() {
            tracker.take_all_devices();
        }
        for &process in &self.processes {
            tracker.adopt(process, &processes::threads(process))?;
        }
        let mut child = match self.child.take() {
            Some(child) => {
                let child = child.go();
                Some(child.map_err(|error| RecordError::Command(self.command.clone(), error))?)
            }
            None => None,
        };
        let mut held: Vec<Seen> = Vec::new();
        let mut status = None;
        loop {
            let is_over = options.at_most.is_some_and(|time| began.elapsed() >= time)
                || stop.load(Ordering::Relaxed);
            let has_ended = match &mut child {
                Some(child) => {
                    status = child.try_wait()?;
                    status.is_some()
                }
                None if self.processes.is_empty() => false,
                None => !self.processes.iter().any(|&process| is_alive(process)),
            };
            let is_last = is_over || has_ended;
            if is_last {
                for pipes in &self.pipes {
                    pipes.instance.set("tracing_on", "0")?;
                }
            }
            self.take(&mut tracker, &mut held, is_last)?;
            if is_last {
                break;
            }
            // Names of files are seen for sure only at once; many events gather first.
            let used = now(ClockId::ThreadCPUTime) - cpu;
            if used > FREE_CPU_NS + (now(ClockId::Monotonic) - start) / 50 {
                std::thread::sleep(if self.names.is_some() { LONG_REST } else { REST });
            }
            self.wait();
        }
        tracker.end()?;
        let elapsed_ns = now(ClockId::Monotonic) - start;
        let recorder_cpu_ns = now(ClockId::ThreadCPUTime) - cpu;
        drop(self.pipes);
        if let Some(child) = child.as_mut().filter(|_| status.is_none()) {
            status = wait_for(child, stop)?;
        }
        let summary = Summary {
            elapsed_ns,
            lost: tracker.lost,
            recorder_cpu_ns: Some(recorder_cpu_ns),
            only_at_devices: tracker.only_at_devices(),
            exit_status: status.map(shell_status),
            ..Summary::default()
        };
        let writer = tracker.into_writer();
        let summary = Summary { requests: writer.requests(), ..summary };
        writer.finish(summary.clone())?;
        Ok(summary)
    }

    fn header(&self, options: &RecordOptions) -> Header {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let shown = !options.anonymous;
        let words = self.command.iter().filter(|_| shown);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        Header {
            command: words.map(|word| word.to_string_lossy().into_owned()).collect(),
            host: if shown { text("/proc/sys/kernel/hostname") } else { String::new() },
            kernel: format!("Linux {}", text("/proc/sys/kernel/osrelease")),
            started_unix_ns: since.map(|time| time.as_nanos() as Nanos),
            source: options.source.clone(),
            anonymous: options.anonymous,
        }
    }

    fn take<W: Write>(
        &mut self,
        tracker: &mut Tracker<W>,
        held: &mut Vec<Seen>,
        is_last: bool,
    ) -> Result<(), RecordError> {
        let began = Instant::now();
        loop {
            let until = now(ClockId::Monotonic).saturating_sub(SETTLE_NS);
            let mut horizon = if is_last { Nanos::MAX } else { until };
            let mut lost = 0;
            let first = held.len();
            self.clock.look();
            for pipes in &mut self.pipes {
                lost += pipes.read(&self.decoder, self.clock, held, &mut horizon)?;
            }
            // The names of the calls that were just read are there.
            if let Some(names) = &mut self.names {
                names.read(&mut tracker.given);
            }
            tracker.early.look(&held[first..]);
            if lost > 0 {
                tracker.lose(lost)?;
            }
            held.sort_by_key(|seen| seen.at);
            let ready = held.partition_point(|seen| seen.at <= horizon);
            for seen in held.drain(..ready) {
                tracker.see(&seen)?;
            }
            tracker.given.forget(horizon.min(until));
            tracker.write(horizon)?;
            // A processor had more than one reading takes. A program that is faster than this must
            // not keep it from seeing its end.
            if horizon >= until || (!is_last && began.elapsed() >= MAX_TURN) {
                return Ok(());
            }
        }
    }

    fn wait(&self) {
        let files = self.pipes.iter().flat_map(Pipes::files);
        let mut polled: Vec<PollFd<'_>> =
            files.map(|file| PollFd::new(file, PollFlags::IN)).collect();
        // An interrupted wait is as good as one that ended.
        let _ = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: WAIT_NS }));
    }
}

fn system_events(
    decoder: &mut Decoder,
    clock: TraceClock,
    events: &[&str],
    device: Option<(u32, u32)>,
) -> Result<Pipes, RecordError> {
    let instance = TraceInstance::new(BUFFER_KIB).map_err(RecordError::of_instance)?;
    clock.set(&instance)?;
    instance.set("events/syscalls/sys_enter_sync/filter", RECORDING)?;
    instance.set("buffer_percent", "0")?;
    for event in events {
        if !decoder.other(&instance, event)? {
            continue;
        }
        if let Some((major, minor)) = device {
            let number = u64::from(major) << 20 | u64::from(minor);
            instance.set(&format!("events/{event}/filter"), &format!("dev == {number}"))?;
        }
        instance.set(&format!("events/{event}/enable"), "1")?;
    }
    Pipes::open(instance)
}

fn now(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}

fn is_alive(process: u32) -> bool {
    fs::metadata(format!("/proc/{process}")).is_ok()
}

fn wait_for(child: &mut Child, stop: &AtomicBool) -> Result<Option<ExitStatus>, RecordError> {
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if stop.load(Ordering::Relaxed) {
            match asked {
                None => {
                    // SAFETY: a signal to a child that was not waited for, so its number is its own.
                    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
                    asked = Some(Instant::now());
                }
                Some(since) if since.elapsed() > PATIENCE => return Ok(None),
                Some(_) => {}
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn shell_status(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}
