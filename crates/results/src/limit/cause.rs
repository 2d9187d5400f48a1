//! Causes of limits.

use super::Limit;
use crate::Bottleneck;
use machine::units::{show_rate, show_size, show_size_rounded, show_time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::OpKind;

/// A rate this far above what a layer admits is a burst.
const ABOVE: f64 = 1.1;

/// A busy part of a simulated machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusyPart {
    pub name: String,
    pub busy_percent: f64,
}

/// The read-ahead of the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadAhead {
    /// The kernel's read-ahead setting, in bytes.
    pub setting_bytes: Option<u64>,
    /// Mean request size at the device, in bytes.
    pub device_request_bytes: Option<f64>,
}

impl ReadAhead {
    fn words(self) -> String {
        let at_device = self.device_request_bytes.map(show_size_rounded);
        let at_device = at_device.map(|size| format!("requests of {size} reach the device"));
        let both: Vec<String> =
            self.setting_bytes.map(show_size).into_iter().chain(at_device).collect();
        if both.is_empty() { "of unknown size".into() } else { both.join("; ") }
    }
}

/// How a plain writer waits for the write-back of dirty pages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WriteBackWait {
    /// The most dirty pages, in percent of the limit at which the kernel holds a writer.
    pub dirty_percent: f64,
    /// Share of the time at this limit, in percent.
    pub held_percent: f64,
    /// Share of the time in which the writer was idle, in percent.
    pub idle_percent: f64,
}

impl WriteBackWait {
    pub(super) fn words(self) -> String {
        let WriteBackWait { dirty_percent, held_percent, idle_percent } = self;
        format!(
            "the writer waits for the write-back of dirty pages ({dirty_percent:.0} % of the kernel's throttling limit, \
             reached for {held_percent:.0} % of the time; the writer is idle {idle_percent:.0} % of it)"
        )
    }
}

/// `limit` has this cause, `rate` is its rate, `word` the bottleneck, `place` the words if the
/// cause names no layer.
macro_rules! causes {
    (($limit:ident, $rate:ident, $word:ident, $place:ident)
     $($(#[$doc:meta])* $name:ident $({ $($(#[$about:meta])* $field:ident: $kind:ty,)+ })? => $said:expr,)+) => {
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum Cause {
            $($(#[$doc])* $name $({ $($(#[$about])* $field: $kind,)+ })?,)+
        }

        impl Cause {
            /// Without the figures that may be left out.
            #[allow(unused_variables)]
            pub(super) fn words(&self, $limit: &Limit) -> String {
                let $rate = $limit.throughput_bytes_per_s.map_or("an unknown rate".into(), show_rate);
                let ($word, $place) = ($limit.what.words(), $limit.what.place());
                match self {
                    $(Cause::$name $({ $($field,)+ })? => $said,)+
                }
            }
        }
    };
}

causes! { (limit, rate, word, place)
    /// No run succeeded.
    NotMeasured => String::new(),
    /// No cause holds, or trials refuted each that does.
    Unidentified {
        /// The causes that trials refuted.
        refuted: Vec<Bottleneck>,
    } => format!("an unidentified cause at {rate}"),
    /// The file system keeps its files in memory.
    InMemory {
        processors_busy_percent: f64,
    } => "memory: the file system keeps its files there".into(),
    /// The rate is what a layer advertises.
    Advertised {
        layer: String,
        admits_bytes_per_s: f64,
    } => {
        let admits = show_rate(*admits_bytes_per_s);
        match limit.throughput_bytes_per_s {
            Some(reached) if reached > admits_bytes_per_s * ABOVE => {
                format!("the {word} {layer}: {rate} in a burst, above the {admits} that it admits")
            }
            _ => format!("the {word} {layer}: {rate} of the {admits} that it admits"),
        }
    },
    /// The request rate is what a layer admits.
    Admitted {
        layer: String,
        /// Requests per second that reach the layer.
        reach_iops: f64,
        /// Mean request size in bytes.
        request_bytes: Option<f64>,
        admits_iops: f64,
    } => {
        let each = request_bytes.map_or(String::new(), |bytes| format!(" of {}", show_size_rounded(bytes)));
        format!("the {word} {layer}: {reach_iops:.0} requests/s{each} reach it, and it admits {admits_iops:.0}")
    },
    /// A good part of a throttle's rate.
    PartOfThrottle {
        layer: String,
        percent: f64,
        admits_bytes_per_s: f64,
    } => {
        let admits = show_rate(*admits_bytes_per_s);
        let who = match limit.of {
            super::LimitOf::Plain => "a program with one request at a time",
            _ => "the program",
        };
        format!("the throttle {layer}: {percent:.0} % of the {admits} that it admits, in bursts, reach {who}")
    },
    /// Pages that are written back one by one, which a throttle counts.
    PagesOfThrottle {
        layer: String,
        pages_per_s: f64,
        admits_iops: f64,
    } => format!(
        "the throttle {layer}: {pages_per_s:.0} pages/s reach the device one by one, and it admits {admits_iops:.0} requests/s"
    ),
    /// The busiest part of a simulated machine.
    Busiest {
        part: BusyPart,
        others: Vec<BusyPart>,
    } => format!("the {word}{}", busy(part, limit.what, &rate)),
    /// The device's requests per second, whatever their size.
    DeviceRequests {
        iops: f64,
        /// The device of a simulated machine.
        part: Option<BusyPart>,
        others: Vec<BusyPart>,
    } => {
        let part = part.as_ref().map_or(String::new(), |part| busy(part, Bottleneck::Device, &rate));
        format!("the requests per second of the device: {iops:.0} of {}{part}", size(limit))
    },
    /// Read-ahead, as a trial shows.
    ReadAheadByTrial {
        read_ahead: ReadAhead,
    } => format!("the read-ahead of the page cache ({})", read_ahead.words()),
    /// Read-ahead, on a simulated machine none of whose parts is always busy.
    ReadAheadNotBusy {
        read_ahead: ReadAhead,
        others: Vec<BusyPart>,
    } => format!("the read-ahead of the page cache ({}): nothing is busy all the time at {rate}", read_ahead.words()),
    /// Read-ahead, as the requests at the device show.
    ReadAheadAtDevice {
        read_ahead: ReadAhead,
        device_mean_depth: Option<f64>,
        percent_of_peak: Option<f64>,
    } => {
        let depth = device_mean_depth.map_or(String::new(), |depth| format!("{depth:.1} requests in the device get "));
        let share = percent_of_peak.map_or(String::new(), |percent| format!(", {percent:.0} % of its best"));
        format!("the read-ahead of the page cache ({}): {depth}{rate}{share}", read_ahead.words())
    },
    /// No part of a simulated machine is always busy.
    NothingBusy {
        others: Vec<BusyPart>,
    } => format!("the time of each request: nothing is busy all the time at {rate}"),
    /// Most of what the load generator can issue at all.
    Generator {
        of_ceiling_percent: f64,
    } => format!("the program that issues them: {rate} is {of_ceiling_percent:.0} % of what it issues without I/O"),
    /// A control group's quota of processor time.
    ProcessorQuota {
        used_processors: f64,
        allowed_processors: f64,
    } => format!(
        "the processor time that the control group allows: {used_processors:.2} of {allowed_processors:.2} processors used at {rate}"
    ),
    /// The issuing threads wait for a processor.
    Contention {
        threads: u32,
        unserved_percent: f64,
        busy_percent: f64,
    } => {
        let who = if *threads > 1 { "the issuing threads were" } else { "the issuing thread was" };
        format!(
            "CPU contention: {who} runnable but not scheduled {unserved_percent:.0} % of the time, and ran {busy_percent:.0} %, at {rate}"
        )
    },
    /// As many threads wait for a processor as there are processors.
    ContentionOfMany {
        threads: u32,
        waiting_threads: f64,
    } => format!(
        "CPU contention: {waiting_threads:.0} of the {threads} issuing threads were waiting for a processor on average, at {rate}"
    ),
    /// All processors are busy.
    Processors {
        busy_percent: f64,
    } => format!("the processors: {busy_percent:.0} % of their time is used at {rate}"),
    /// The issuing threads are busy.
    Thread {
        threads: u32,
        busy_percent: f64,
    } => {
        let which = if *threads > 1 { "the threads that issue" } else { "the one thread that issues" };
        format!("{which} them: busy {busy_percent:.0} % of the time at {rate}")
    },
    /// Nothing is saturated: a greater depth gains.
    NothingSaturated => format!("the time of each request: nothing is saturated at {rate}"),
    /// A device that is busy, with requests waiting or while more of them gain nothing.
    BusyDevice {
        busy_percent: f64,
        mean_depth: f64,
    } => format!("{place}: busy {busy_percent:.0} % of the time with {mean_depth:.1} requests in it at {rate}"),
    /// One more thread gains, and a greater depth does not.
    SerialKernel {
        thread_busy_percent: f64,
    } => format!("what the kernel does in turn for one thread (busy {thread_busy_percent:.0} % of the time), at {rate}"),
    /// A greater depth gains nothing.
    DeeperGainsNothing {
        processors_busy_percent: f64,
    } => format!(
        "{place}: more outstanding requests show no gain over {rate}, with {processors_busy_percent:.0} % of the processors busy"
    ),
    /// A plain program gets nearly the peak.
    NearPeak {
        percent_of_peak: f64,
    } => format!("{place}: {rate} is {percent_of_peak:.0} % of the best that any setting gets"),
    /// A plain program's thread is busy.
    PlainThread {
        busy_percent: f64,
    } => format!("the one thread: busy {busy_percent:.0} % of the time with calls and copies at {rate}"),
    /// The thread is charged for the kernel's write-back.
    FlushingThread {
        busy_percent: f64,
        flush_percent: f64,
    } => format!(
        "the one thread: busy {busy_percent:.0} % of the time until everything is durable, as it is charged for the kernel's write-back; \
         {flush_percent:.0} % of it is the flush, at {rate}"
    ),
    /// Most of the time passes in the flush.
    Flush {
        flush_percent: f64,
    } => format!("the flush: {flush_percent:.0} % of the time passes after the last write returned, at {rate}"),
    /// The writing thread is busy until the last write returns.
    WritingThread {
        busy_percent: f64,
    } => format!("the one thread: busy {busy_percent:.0} % of the time until the last write returns, at {rate}"),
    /// The copy between the page cache and the program takes most of a request's time.
    Copying {
        percent: f64,
    } => format!("memory: copying takes {percent:.0} % of each request's time at {rate}"),
    /// Calls and copies take most of a request's time.
    OwnWork {
        percent: f64,
        copy_percent: f64,
        cpu_ns_per_mib: f64,
    } => {
        let who = if limit.what == Bottleneck::Processor { "the processor" } else { "the one thread" };
        let copy = if *copy_percent >= 1.0 { format!(" (the copy {copy_percent:.0} %)") } else { String::new() };
        let each = show_time(*cpu_ns_per_mib);
        format!("{who}: calls and copies take {percent:.0} % of each request's time{copy}, {each} a MiB, at {rate}")
    },
    /// One request after the other, most of whose time is waiting.
    OneAtATime {
        /// The processor's share of the request's time in percent, if noticeable.
        busy_percent: Option<f64>,
    } => {
        let own = busy_percent.map_or(String::new(), |busy| {
            format!(", {:.0} % of it waiting and {busy:.0} % the processor's", 100.0 - busy)
        });
        format!("the time of each request{own}: one after the other gets {rate}")
    },
    /// The file system journals the data too.
    DataJournal {
        layer: String,
        /// Bytes at the device per byte written.
        device_bytes_per_byte: f64,
    } => format!(
        "the journal of {layer} (data=journal): {device_bytes_per_byte:.1} bytes reach the device for each that the program writes, at {rate}"
    ),
    /// The file system flushes each write.
    SyncMount {
        layer: String,
    } => format!(
        "the flush of each write: {layer} is mounted with -o sync, so each returns from stable storage, at {rate}"
    ),
    /// The device without the file system is faster.
    FasterBelow {
        layer: String,
        device: String,
        ratio: f64,
    } => format!("the file system ({layer}): {device} itself gives {ratio:.2} x the {rate}"),
    /// Two files are faster than one.
    FasterOnTwoFiles {
        layer: String,
        ratio: f64,
    } => format!("the file system ({layer}): writes to two files get {ratio:.2} x the {rate} of one"),
    /// Requests wait above the block layer.
    HeldAbove {
        /// The throttle or file system that holds the requests; absent if none is known.
        layer: Option<String>,
        /// Share of a request's time before the block layer has it, if traced.
        submit_percent: Option<f64>,
        outstanding: u32,
        device_mean_depth: Option<f64>,
    } => {
        let evidence = match submit_percent {
            Some(percent) => format!("{percent:.0} % of a request's time passes before the block layer receives it"),
            None => format!("of {outstanding} outstanding {:.1} are at the device", device_mean_depth.unwrap_or(0.0)),
        };
        match layer {
            Some(layer) if limit.what == Bottleneck::Throttle => format!("the throttle {layer}: {evidence}, at {rate}"),
            Some(layer) => format!("the file system ({layer}): {evidence}, and the thread is idle, at {rate}"),
            None => format!("an unreported throttle: {evidence}, and the thread is idle, at {rate}"),
        }
    },
    /// The device's queue is full.
    FullQueue {
        nr_requests: u32,
        device_mean_depth: f64,
        outstanding: u32,
    } => format!(
        "the length of the device's queue (nr_requests {nr_requests}): {device_mean_depth:.1} of {outstanding} outstanding fit into it, at {rate}"
    ),
    /// Requests wait in the block layer's queue.
    InQueue {
        percent: f64,
    } => format!("{place}: {percent:.0} % of a request's time passes in the block layer's queue, at {rate}"),
    /// Requests wait after the device completes them.
    AfterDevice {
        percent: f64,
    } => {
        let who = if limit.what == Bottleneck::Thread { "the one thread that issues them" } else { "the processor" };
        format!("{who}: {percent:.0} % of a request's time passes after the device completes it, at {rate}")
    },
    /// Half as many requests get little more than half.
    HalfAsMany {
        percent: f64,
    } => format!("the time of each request: half as many outstanding get {percent:.0} % of {rate}"),
    /// No device counts its requests, and the program's side is idle.
    Served {
        threads_busy_percent: f64,
        processors_busy_percent: f64,
    } => format!(
        "{place}: the threads that issue them are busy {threads_busy_percent:.0} % of the time and the processors \
         {processors_busy_percent:.0} %, at {rate}"
    ),
    /// The recorded program rarely waits for these requests.
    OwnPauses {
        /// Share of the recording with such a request under way, in percent.
        waiting_percent: f64,
    } => format!("the program's own work: it waits for them {waiting_percent:.0} % of the time, at {rate}"),
    /// The page cache serves a recorded program.
    FromPageCache {
        /// Share of the bytes that no device had to move while the program waited, in percent.
        percent: f64,
    } => format!("memory: {percent:.0} % of the bytes wait for no device, at {rate}"),
    /// A recorded program waits until its writes are on stable storage.
    FlushEach {
        /// Share of the waiting in these calls, in percent.
        waiting_percent: f64,
        writes_per_flush: f64,
    } => {
        let each = match *writes_per_flush {
            writes if writes < 1.5 => "of each write".to_owned(),
            writes => format!("after every {writes:.0} writes"),
        };
        format!("the flush {each}: {waiting_percent:.0} % of the waiting is for stable storage, at {rate}")
    },
    /// A recorded program reads the same blocks from the device again.
    CacheTooSmall {
        /// Different bytes that were read.
        working_set_bytes: u64,
        /// Share of the bytes from the device that were read before, in percent.
        again_percent: f64,
    } => {
        let set = show_size_rounded(*working_set_bytes as f64);
        format!("the size of the cache: {again_percent:.0} % of the bytes from the device were read before, and {set} are used, at {rate}")
    },
    /// The writer is held at the kernel's limit of dirty pages.
    DirtyPages {
        /// The throttle below the page cache, if any.
        throttle: Option<String>,
        wait: WriteBackWait,
    } => {
        let below = throttle.as_ref().map_or(place.to_owned(), |name| format!("the throttle {name}"));
        format!("{below}: {}, at {rate}", wait.words())
    },
}

impl Cause {
    /// Figures that a short text leaves out.
    pub(super) fn aside(&self, limit: &Limit) -> Option<String> {
        let shown = match self {
            Cause::InMemory { processors_busy_percent: busy } => {
                let rate = limit.throughput_bytes_per_s.map_or(String::new(), show_rate);
                vec![rate, format!("{busy:.0} % of the processors busy")]
            }
            Cause::Busiest { others, .. }
            | Cause::DeviceRequests { others, .. }
            | Cause::ReadAheadNotBusy { others, .. }
            | Cause::NothingBusy { others } => {
                others.iter().map(|one| format!("{} {:.0} %", one.name, one.busy_percent)).collect()
            }
            Cause::Unidentified { refuted } => {
                refuted.iter().map(|what| format!("not the {}", what.words())).collect()
            }
            _ => Vec::new(),
        };
        (!shown.is_empty()).then(|| shown.join(", "))
    }
}

fn busy(part: &BusyPart, what: Bottleneck, rate: &str) -> String {
    let name = if what.words() == part.name { String::new() } else { format!(" ({})", part.name) };
    format!("{name}: busy {:.0} % of the time at {rate}", part.busy_percent)
}

fn size(limit: &Limit) -> String {
    limit.request_bytes.map_or("unknown size".into(), |bytes| show_size(u64::from(bytes)))
}

/// `reads`, `plain writes of 64 KiB`, `random reads of 4 KiB`.
pub(super) fn subject(limit: &Limit) -> String {
    let op: OpKind = limit.op;
    match limit.of {
        super::LimitOf::Peak => format!("{op}s"),
        super::LimitOf::Plain => format!("plain {op}s of {}", size(limit)),
        super::LimitOf::Random => format!("random {op}s of {}", size(limit)),
        super::LimitOf::Recorded => format!("{op}s of {}", size(limit)),
    }
}
