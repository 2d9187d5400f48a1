//! The engines, and what each can do: the only place that knows, besides the file that serves it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The mechanism by which requests are issued.
///
/// Code outside an engine's own file asks for a capability, not for a name:
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
    /// As many threads as the depth, each with one blocking call at a time, sharing one sequence of requests.
    Threads,
    /// Linux io_uring: submission and completion rings shared with the kernel.
    IoUring,
    /// Linux native asynchronous I/O (`io_submit`).
    Libaio,
    /// Copies from and to a memory-mapped file.
    Mmap,
    /// No I/O: each request is done when it is issued. What is measured is the generator alone.
    Null,
}

/// The most requests that one stream keeps outstanding.
pub const MAX_DEPTH: u32 = 65_536;

/// How one stream keeps several requests outstanding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Concurrency {
    /// It cannot: a call returns when its request is done.
    One,
    /// A thread for each of them.
    Workers,
    /// A queue: submitting returns before the request is done.
    Queue,
}

/// A row of the table: all that anybody asks about an engine.
struct Row {
    engine: Engine,
    /// On the command line and in JSON.
    name: &'static str,
    concurrency: Concurrency,
    /// Reads and writes memory that maps one file: no direct I/O, no stripe, no growing file.
    mapped: bool,
    does_io: bool,
    /// Each request can have a priority of its own.
    priorities: bool,
    /// Buffered requests are queued too, and not served while they are submitted.
    queues_buffered: bool,
    /// What to tell a program that should use it, without a full stop.
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

/// Every engine, in the order of the enum and of the command line's help.
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

/// Engines that keep several requests outstanding, the preferred first.
const PREFERRED: [Engine; 3] = [Engine::IoUring, Engine::Libaio, Engine::Threads];

impl Engine {
    /// Every engine, in the order of the command line's help.
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

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Advice to a program that should use it, without a full stop.
    pub fn advice(self) -> &'static str {
        self.row().advice
    }

    /// The engine to use for several requests outstanding: the first of io_uring, libaio and threads among `engines`; threads work everywhere.
    pub fn asynchronous(engines: &[Engine]) -> Engine {
        PREFERRED.into_iter().find(|engine| engines.contains(engine)).unwrap_or(Engine::Threads)
    }

    /// The engine to use at a depth: blocking calls suffice for one request at a time.
    pub fn for_depth(depth: u32, engines: &[Engine]) -> Engine {
        if depth <= 1 { Engine::Sync } else { Engine::asynchronous(engines) }
    }

    /// Says that this engine replaced the preferred one because that is not among `engines`; none if it did not.
    pub fn fallback(self, engines: &[Engine]) -> Option<String> {
        let [preferred, others @ ..] = PREFERRED;
        let replaced = others.contains(&self) && !engines.contains(&preferred);
        replaced.then(|| format!("{preferred} is not available here, so {self} was used instead"))
    }

    /// The engine that replaces this one on a machine with these `engines`; none if nothing does: it is there, or only it will do.
    pub fn replacement(self, engines: &[Engine]) -> Option<Engine> {
        (self == PREFERRED[0] && !engines.contains(&self)).then(|| Engine::asynchronous(engines))
    }

    /// Whether one thread can keep more than one request outstanding.
    pub fn is_async(self) -> bool {
        self.row().concurrency == Concurrency::Queue
    }

    /// The most requests that a stream can keep outstanding.
    pub fn max_depth(self) -> u32 {
        if self.row().concurrency == Concurrency::One { 1 } else { MAX_DEPTH }
    }

    /// Threads that serve one stream of this depth.
    pub fn workers(self, depth: u32) -> u32 {
        if self.has_workers() { depth } else { 1 }
    }

    /// Whether each outstanding request needs a thread of its own.
    pub fn has_workers(self) -> bool {
        self.row().concurrency == Concurrency::Workers
    }

    /// Whether it accesses one file through mapped memory: no direct I/O, no stripe, no file that grows.
    pub fn is_mapped(self) -> bool {
        self.row().mapped
    }

    /// Whether requests reach the target at all.
    pub fn does_io(self) -> bool {
        self.row().does_io
    }

    /// Whether each request can have a priority of its own.
    pub fn takes_priorities(self) -> bool {
        self.row().priorities
    }

    /// Whether buffered requests stay outstanding too, instead of being served one by one while they are submitted.
    pub fn queues_buffered(self) -> bool {
        self.row().queues_buffered
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
