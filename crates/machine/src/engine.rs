//! The engines and their capabilities. Only this module and the engine's own implementation know
//! them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The mechanism by which requests are issued.
///
/// Other code queries a capability instead of comparing names:
///
/// ```
/// use machine::Engine;
///
/// assert!(Engine::IoUring.is_async() && Engine::IoUring.max_depth() > 1);
/// assert_eq!(Engine::Threads.workers(8), 8);
/// assert_eq!(Engine::for_depth(8, &[Engine::Sync, Engine::Libaio]), Engine::Libaio);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// One blocking call at a time: `pread`, `pwrite`. Depth is always 1.
    Sync,
    /// As many threads as the depth, each with one blocking call at a time, sharing one sequence of
    /// requests.
    Threads,
    /// Linux io_uring: submission and completion rings shared with the kernel.
    IoUring,
    /// Linux native asynchronous I/O (`io_submit`).
    Libaio,
    /// Copies from and to a memory-mapped file.
    Mmap,
    /// No I/O: each request completes when it is issued. Measures only the generator.
    Null,
}

/// Maximum depth of one stream.
pub const MAX_DEPTH: u32 = 65_536;

/// How one stream keeps several requests outstanding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Concurrency {
    /// Not at all: a call returns when its request is done.
    One,
    /// One thread per request.
    Workers,
    /// A queue: submission returns before the request is done.
    Queue,
}

struct Row {
    engine: Engine,
    /// Name on the command line and in JSON.
    name: &'static str,
    concurrency: Concurrency,
    /// Accesses one file through mapped memory: no direct I/O, no stripe, no growing file.
    mapped: bool,
    does_io: bool,
    /// Supports a priority per request.
    priorities: bool,
    /// Queues buffered requests too, instead of serving them during submission.
    queues_buffered: bool,
    /// Advice to a program that should use it, without a full stop.
    advice: &'static str,
}

const BLOCKING: Row = Row {
    engine: Engine::Sync,
    name: "sync",
    concurrency: Concurrency::One,
    mapped: false,
    does_io: true,
    priorities: false,
    queues_buffered: false,
    advice: "issue requests with pread and pwrite",
};

/// All engines, in the order of the enum and of the command line's help.
const ENGINES: [Row; 6] = [
    BLOCKING,
    Row {
        engine: Engine::Threads,
        name: "threads",
        concurrency: Concurrency::Workers,
        queues_buffered: true,
        advice: "issue requests from several threads with pread and pwrite",
        ..BLOCKING
    },
    Row {
        engine: Engine::IoUring,
        name: "io_uring",
        concurrency: Concurrency::Queue,
        priorities: true,
        queues_buffered: true,
        advice: "issue requests through io_uring",
        ..BLOCKING
    },
    Row {
        engine: Engine::Libaio,
        name: "libaio",
        concurrency: Concurrency::Queue,
        priorities: true,
        advice: "issue requests with io_submit",
        ..BLOCKING
    },
    Row { engine: Engine::Mmap, name: "mmap", mapped: true, advice: "map the file into memory", ..BLOCKING },
    Row {
        engine: Engine::Null,
        name: "null",
        concurrency: Concurrency::Queue,
        does_io: false,
        queues_buffered: true,
        advice: "do no I/O",
        ..BLOCKING
    },
];

/// Engines that keep several requests outstanding, in order of preference.
const PREFERRED: [Engine; 3] = [Engine::IoUring, Engine::Libaio, Engine::Threads];

impl Engine {
    /// All engines, in the order of the command line's help.
    pub const ALL: [Engine; ENGINES.len()] = {
        let mut all = [Engine::Null; ENGINES.len()];
        let mut index = 0;
        while index < all.len() {
            assert!(ENGINES[index].engine as usize == index);
            all[index] = ENGINES[index].engine;
            index += 1;
        }
        all
    };

    /// The engine that accesses a file through mapped memory.
    pub fn mapped() -> Engine {
        Engine::Mmap
    }

    fn row(self) -> &'static Row {
        &ENGINES[self as usize]
    }

    /// Name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Advice to a program that should use it, without a full stop.
    pub fn advice(self) -> &'static str {
        self.row().advice
    }

    /// The preferred engine among `engines` for several requests outstanding: io_uring, libaio or
    /// threads, which work everywhere.
    pub fn asynchronous(engines: &[Engine]) -> Engine {
        PREFERRED.into_iter().find(|engine| engines.contains(engine)).unwrap_or(Engine::Threads)
    }

    /// The engine for a depth: blocking calls are sufficient for one request at a time.
    pub fn for_depth(depth: u32, engines: &[Engine]) -> Engine {
        if depth <= 1 { Engine::Sync } else { Engine::asynchronous(engines) }
    }

    /// A sentence if this engine replaced the preferred one because that is not among `engines`.
    pub fn fallback(self, engines: &[Engine]) -> Option<String> {
        let [preferred, others @ ..] = PREFERRED;
        let replaced = others.contains(&self) && !engines.contains(&preferred);
        replaced.then(|| format!("{preferred} is not available here, so {self} was used instead"))
    }

    /// The engine that replaces this one on a machine with these `engines`; `None` if this one is
    /// available or has no substitute.
    pub fn replacement(self, engines: &[Engine]) -> Option<Engine> {
        (self == PREFERRED[0] && !engines.contains(&self)).then(|| Engine::asynchronous(engines))
    }

    /// Whether one thread can keep more than one request outstanding.
    pub fn is_async(self) -> bool {
        self.row().concurrency == Concurrency::Queue
    }

    /// Maximum number of requests outstanding per stream.
    pub fn max_depth(self) -> u32 {
        if self.row().concurrency == Concurrency::One { 1 } else { MAX_DEPTH }
    }

    /// Threads that serve one stream of this depth.
    pub fn workers(self, depth: u32) -> u32 {
        if self.has_workers() { depth } else { 1 }
    }

    /// Whether each outstanding request needs its own thread.
    pub fn has_workers(self) -> bool {
        self.row().concurrency == Concurrency::Workers
    }

    /// Whether it accesses one file through mapped memory: no direct I/O, no stripe, no growing
    /// file.
    pub fn is_mapped(self) -> bool {
        self.row().mapped
    }

    /// Whether requests reach the target at all.
    pub fn does_io(self) -> bool {
        self.row().does_io
    }

    /// Whether it supports a priority per request.
    pub fn takes_priorities(self) -> bool {
        self.row().priorities
    }

    /// Whether buffered requests are queued too, instead of being served one by one during
    /// submission.
    pub fn queues_buffered(self) -> bool {
        self.row().queues_buffered
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
