//! Requests and waiting of a recording, by file and by thread.

mod bursts;
mod file;
mod flow;
mod occupancy;
mod role;
mod sentences;
mod timeline;

pub use bursts::Bursts;
pub use file::{DeviceWork, FileProfile, Locality, SyncProfile};
pub use flow::{BLOCK_BYTES, FlowProfile, SizeCount};
pub use occupancy::Concurrency;
pub use role::Role;
pub(crate) use role::SEQUENTIAL;
pub use timeline::{Course, HeatMap, Moment};

use crate::verdict::Verdict;
use apptrace::foreign::ForeignError;
use apptrace::{
    Access, Event, Header, Index, Interface, Kind, Renamed, Request, TraceReader, TracedFile,
};
use file::{File, ReuseBudget};
use flow::Flow;
use machine::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use timeline::CourseRecorder;

pub const SCHEMA: &str = "halfpower.profile/1";

/// Later files share one profile.
const MAX_FILES: usize = 4096;

/// Threads searched for the caller of a delayed request.
const MAX_CALLERS: usize = 64;

const MAX_THREADS: usize = 1 << 16;

/// The requests of a recorded program, summed up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Share of the bytes that the program's threads read from files which no device had to read
    /// for them; `None` if the recording does not show devices. Read-ahead counts as read.
    pub read_hits: Option<f64>,
    /// The files, in order of the time that the program waited for them, the longest first.
    pub files: Vec<FileProfile>,
    /// Requests that reached devices: those of the program's threads, and write-back.
    pub devices: Vec<DeviceProfile>,
    /// Latencies over time.
    pub course: Course,
    /// The limit of the program, compared with a study of its volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

pub fn schema() -> String {
    serde_json::to_string_pretty(&schemars::schema_for!(Profile)).unwrap_or_default() + "\n"
}

/// Requests that reached a block device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceProfile {
    pub name: String,
    pub reads: Option<FlowProfile>,
    pub writes: Option<FlowProfile>,
    /// Flushes of the device's cache without data.
    pub flushes: u64,
}

#[derive(Default)]
struct Device {
    name: String,
    reads: Flow,
    writes: Flow,
    flushes: u64,
}

#[derive(Clone, Copy, Default)]
struct ThreadTimes {
    end: Option<Nanos>,
    /// File and end of the last system call.
    call: Option<(Index, Nanos)>,
}

#[derive(Default)]
struct Files {
    all: Vec<File>,
    budget: ReuseBudget,
}

impl Files {
    fn push(&mut self, file: TracedFile) {
        if self.all.len() < MAX_FILES {
            self.all.push(File::new(file));
        } else if self.all.len() == MAX_FILES {
            let name = "all other files".to_owned();
            self.all.push(File::new(TracedFile { name, kind: Kind::Unknown, size_bytes: None }));
        }
    }

    fn of(&mut self, index: Index) -> Option<&mut File> {
        self.all.get_mut((index as usize).min(MAX_FILES))
    }

    fn add(&mut self, request: &Request) {
        if let Some(file) = self.all.get_mut((request.file as usize).min(MAX_FILES)) {
            file.add(request, &mut self.budget);
        }
    }
}

#[derive(Default)]
pub(crate) struct Roles {
    files: Files,
    roles: Vec<Role>,
}

impl Roles {
    pub(crate) fn file(&mut self, file: TracedFile) {
        self.files.push(file);
    }

    pub(crate) fn request(&mut self, request: &Request) {
        self.files.add(request);
    }

    /// Call it after the last request.
    pub(crate) fn end(&mut self) {
        self.roles = self.files.all.iter().map(File::role).collect();
    }

    pub(crate) fn of(&self, index: Index) -> Role {
        self.roles.get((index as usize).min(MAX_FILES)).copied().unwrap_or(Role::Other)
    }
}

#[derive(Default)]
struct Collector {
    files: Files,
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
    course: CourseRecorder,
    /// The recorder shows every device request, even if there were none.
    sees_devices: bool,
}

impl Collector {
    fn event(&mut self, event: Event) {
        match event {
            Event::File(file) => self.files.push(file),
            Event::Request(request) => self.request(&request),
            Event::Renamed(Renamed { file: index, name }) => {
                if (index as usize) < MAX_FILES
                    && let Some(file) = self.files.of(index)
                {
                    file.file.name = name;
                }
            }
            Event::Lost(count) => self.lost += count,
            Event::Thread(_) => {}
        }
    }

    fn request(&mut self, request: &Request) {
        let duration = request.duration_ns.unwrap_or(0);
        let end = request.at_ns.saturating_add(duration);
        self.end_ns = self.end_ns.max(end);
        let Some(file) = self.files.of(request.file) else { return };
        if file.file.kind == Kind::Stream {
            return;
        }
        // Other requests led to these.
        if request.interface == Interface::Block {
            let device = self.devices.entry(request.file).or_default();
            if device.name.is_empty() {
                device.name.clone_from(&file.file.name);
            }
            match request.access {
                Access::Read => {
                    device.reads.add(request);
                    self.device_read_bytes += request.bytes;
                }
                Access::Write => device.writes.add(request),
                Access::Flush => device.flushes += 1,
                _ => {}
            }
            self.device_work(request);
            return;
        }
        if request.access == Access::Unlink {
            file.deleted |= request.result.is_none_or(|result| result >= 0);
            return;
        }
        self.files.add(request);
        self.course.add(request);
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
            if request.interface == Interface::SystemCall {
                times.call = Some((request.file, end));
            }
        }
    }

    /// The file of the thread's call, or of the only call under way if a throttle delayed it.
    fn caller(&self, request: &Request) -> Option<Index> {
        let under_way = |times: &ThreadTimes| {
            times.call.filter(|(_, end)| request.at_ns <= *end).map(|(file, _)| file)
        };
        if let Some(thread) = request.thread {
            return under_way(self.threads.get(&thread)?);
        }
        if request.access != Access::Read || self.threads.len() > MAX_CALLERS {
            return None;
        }
        let mut files: Vec<Index> = self.threads.values().filter_map(under_way).collect();
        files.sort_unstable();
        files.dedup();
        match files[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    fn device_work(&mut self, request: &Request) {
        let Some(file) = self.caller(request).and_then(|file| self.files.of(file)) else { return };
        match request.access {
            Access::Read => {
                file.device.reads += 1;
                file.device.read_bytes += request.bytes;
            }
            Access::Write => {
                file.device.writes += 1;
                file.device.written_bytes += request.bytes;
            }
            _ => {}
        }
    }
}

pub fn profile<R: Read>(mut trace: TraceReader<R>) -> apptrace::Result<Profile> {
    let mut collector = Collector::default();
    for event in trace.by_ref() {
        collector.event(event?);
    }
    let Header { command, started_unix_ns, .. } = trace.header().clone();
    let mut doubts = Vec::new();
    if trace.is_truncated() {
        doubts.push("the trace was cut: its end is missing".to_owned());
    }
    let summary = trace.summary();
    doubts.extend(summary.into_iter().flat_map(|summary| summary.missing.clone()));
    let hidden = summary.into_iter().flat_map(|summary| &summary.only_at_devices);
    doubts.extend(hidden.map(|(what, count)| {
        format!("{what} ({count}): these requests show only at the devices, not at their files")
    }));
    collector.sees_devices = summary.is_some_and(|summary| summary.missing.is_empty());
    collector.lost = summary.map_or(collector.lost, |summary| summary.lost.max(collector.lost));
    let elapsed_ns = summary.map_or(collector.end_ns, |summary| summary.elapsed_ns);
    Ok(Profile { command, started_unix_ns, ..collector.profile(elapsed_ns, doubts) })
}

/// Another tool's trace, to the last end.
pub fn profile_of(
    events: impl Iterator<Item = Result<Event, ForeignError>>,
) -> Result<Profile, ForeignError> {
    let mut collector = Collector::default();
    for event in events {
        collector.event(event?);
    }
    let elapsed_ns = collector.end_ns;
    Ok(collector.profile(elapsed_ns, Vec::new()))
}

impl Collector {
    fn profile(self, elapsed_ns: Nanos, mut doubts: Vec<String>) -> Profile {
        if self.lost > 0 {
            let lost = self.lost;
            doubts.push(format!("{lost} events were lost: counts and rates are too low"));
        }
        let waited = self.waited_ns;
        let sees_devices = self.sees_devices || !self.devices.is_empty();
        let asked = self.files.all.iter().filter(|file| file.file.kind != Kind::Stream);
        let mut files: Vec<FileProfile> = asked
            .map(|file| file.profile(elapsed_ns, waited, sees_devices))
            .filter(FileProfile::has_requests)
            .collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.waited_ns));
        Profile {
            schema: SCHEMA.to_owned(),
            command: Vec::new(),
            started_unix_ns: None,
            elapsed_ns,
            doubts,
            requests: self.requests,
            threads: self.threads.len() as u64,
            waited_ns: waited,
            think_ns: self.think_ns.checked_div(self.thinks),
            read_hits: (sees_devices && self.read_bytes > 0).then(|| {
                let missed = self.device_read_bytes as f64 / self.read_bytes as f64;
                (1.0 - missed).max(0.0)
            }),
            files,
            devices: self
                .devices
                .values()
                .map(|device| DeviceProfile {
                    name: device.name.clone(),
                    reads: device.reads.profile(),
                    writes: device.writes.profile(),
                    flushes: device.flushes,
                })
                .collect(),
            course: self.course.course(),
            verdict: None,
        }
    }
}
