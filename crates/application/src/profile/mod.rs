//! The profile of a recording: by file and by thread, what was asked and what was waited for.

mod file;
mod flow;
mod role;
mod sentences;

pub use file::{Bursts, Concurrency, FileProfile, Locality, SyncProfile};
pub use flow::{BLOCK_BYTES, FlowProfile, Latency, SizeCount};
pub use role::Role;

use apptrace::{Access, Event, Header, Index, Interface, Kind, Request, TraceReader, TracedFile};
use file::File;
use flow::Flow;
use machine::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::io::Read;

/// The schema's name in the document.
pub const SCHEMA: &str = "halfpower.profile/1";

/// Files with a profile of their own; those that come later share one.
const MAX_FILES: usize = 4096;

/// Threads that are followed.
const MAX_THREADS: usize = 1 << 16;

/// What a recorded program asks of storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub schema: String,
    pub command: Vec<String>,
    pub started_unix_ns: Option<Nanos>,
    pub elapsed_ns: Nanos,
    /// Reasons not to trust the figures.
    pub doubts: Vec<String>,
    /// Requests of files and devices; pipes and sockets are left out.
    pub requests: u64,
    pub threads: u64,
    /// Time of all threads in requests.
    pub waited_ns: Nanos,
    /// Mean time of a thread between two of its requests.
    pub think_ns: Option<Nanos>,
    /// Share of the bytes that its threads read from files which no device had to read for them;
    /// `None` without requests of devices. Read-ahead counts as read.
    pub read_hits: Option<f64>,
    /// The longest waited for first.
    pub files: Vec<FileProfile>,
    /// What reached devices: requests of its threads, and write-back.
    pub devices: Vec<DeviceProfile>,
}

/// Requests that reached a block device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceProfile {
    pub name: String,
    pub reads: Option<FlowProfile>,
    pub writes: Option<FlowProfile>,
}

#[derive(Default)]
struct Device {
    name: String,
    reads: Flow,
    writes: Flow,
}

#[derive(Clone, Copy, Default)]
struct ThreadTimes {
    end: Option<Nanos>,
}

#[derive(Default)]
struct Collector {
    files: Vec<File>,
    threads: HashMap<Index, ThreadTimes>,
    devices: BTreeMap<Index, Device>,
    read_bytes: u64,
    device_read_bytes: u64,
    requests: u64,
    end_ns: Nanos,
    waited_ns: Nanos,
    think_ns: Nanos,
    thinks: u64,
    lost: u64,
}

impl Collector {
    fn file(&mut self, file: TracedFile) {
        if self.files.len() < MAX_FILES {
            self.files.push(File::new(file));
        } else if self.files.len() == MAX_FILES {
            let name = "all other files".to_owned();
            self.files.push(File::new(TracedFile { name, kind: Kind::Unknown, size_bytes: None }));
        }
    }

    fn request(&mut self, request: &Request) {
        let duration = request.duration_ns.unwrap_or(0);
        let end = request.at_ns.saturating_add(duration);
        self.end_ns = self.end_ns.max(end);
        let Some(file) = self.files.get_mut((request.file as usize).min(MAX_FILES)) else { return };
        if file.file.kind == Kind::Stream {
            return;
        }
        // What the other requests led to.
        if request.interface == Interface::Block {
            let device = self.devices.entry(request.file).or_default();
            if device.name.is_empty() {
                device.name.clone_from(&file.file.name);
            }
            match request.access {
                Access::Read => {
                    device.reads.add(request);
                    self.device_read_bytes += request.thread.map_or(0, |_| request.bytes);
                }
                Access::Write => device.writes.add(request),
                _ => {}
            }
            return;
        }
        file.add(request);
        if request.access == Access::Read {
            self.read_bytes +=
                request.result.and_then(|done| u64::try_from(done).ok()).unwrap_or(0);
        }
        self.requests += 1;
        self.waited_ns += duration;
        let Some(thread) = request.thread else { return };
        if self.threads.len() < MAX_THREADS || self.threads.contains_key(&thread) {
            let times = self.threads.entry(thread).or_default();
            if let Some(before) = times.end {
                self.think_ns += request.at_ns.saturating_sub(before);
                self.thinks += 1;
            }
            times.end = Some(end);
        }
    }
}

/// Reads a recording to its end and makes its profile.
///
/// # Errors
/// Those of the trace.
pub fn profile<R: Read>(mut trace: TraceReader<R>) -> apptrace::Result<Profile> {
    let mut collector = Collector::default();
    for event in trace.by_ref() {
        match event? {
            Event::File(file) => collector.file(file),
            Event::Request(request) => collector.request(&request),
            Event::Lost(count) => collector.lost += count,
            Event::Thread(_) => {}
        }
    }
    let Header { command, started_unix_ns, .. } = trace.header().clone();
    let summary = trace.summary();
    let elapsed_ns = summary.map_or(collector.end_ns, |summary| summary.elapsed_ns);
    let mut doubts = Vec::new();
    if trace.is_truncated() {
        doubts.push("the trace was cut: its end is missing".to_owned());
    }
    let lost = summary.map_or(collector.lost, |summary| summary.lost.max(collector.lost));
    if lost > 0 {
        doubts.push(format!("{lost} events were lost: counts and rates are too low"));
    }
    doubts.extend(summary.into_iter().flat_map(|summary| summary.missing.clone()));
    let waited = collector.waited_ns;
    let mut files: Vec<FileProfile> = collector
        .files
        .iter()
        .filter(|file| file.file.kind != Kind::Stream)
        .map(|file| file.profile(elapsed_ns, waited))
        .filter(|file| file.has_requests())
        .collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.waited_ns));
    Ok(Profile {
        schema: SCHEMA.to_owned(),
        command,
        started_unix_ns,
        elapsed_ns,
        doubts,
        requests: collector.requests,
        threads: collector.threads.len() as u64,
        waited_ns: waited,
        think_ns: collector.think_ns.checked_div(collector.thinks),
        read_hits: (!collector.devices.is_empty() && collector.read_bytes > 0).then(|| {
            let missed = collector.device_read_bytes as f64 / collector.read_bytes as f64;
            (1.0 - missed).max(0.0)
        }),
        files,
        devices: collector
            .devices
            .values()
            .map(|device| DeviceProfile {
                name: device.name.clone(),
                reads: device.reads.profile(),
                writes: device.writes.profile(),
            })
            .collect(),
    })
}
