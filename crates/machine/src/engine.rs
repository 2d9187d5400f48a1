//! The I/O engines, whose names only this module and their implementations know.

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
    /// Blocking `pread` and `pwrite` calls, one at a time: the depth is always 1.
    Sync,
    /// As many threads as the depth, each with one blocking call at a time, sharing one sequence of
    /// requests.
    Threads,
    /// Linux io_uring, with rings shared with the kernel.
    IoUring,
    /// Linux asynchronous I/O with `io_submit`.
    Libaio,
    Mmap,
    /// Linux `splice` and `vmsplice`, one block at a time through a pipe.
    Splice,
    /// No I/O: measures only the generator.
    Null,
    /// Windows: an event per request; a younger completion is taken only after the oldest.
    /// Simulated only.
    Events,
    /// Windows: completion routines, called while the program sleeps. Simulated only.
    Routines,
    /// Windows: a completion port. Simulated only.
    Port,
}

pub const MAX_DEPTH: u32 = 65_536;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Concurrency {
    One,
    Workers,
    Queue,
}

struct Row {
    engine: Engine,
    name: &'static str,
    concurrency: Concurrency,
    mapped: bool,
    does_io: bool,
    priorities: bool,
    queues_buffered: bool,
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

/// Rows are in the order of the enum and of the help.
const ENGINES: [Row; 10] = [
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
    Row {
        engine: Engine::Mmap,
        name: "mmap",
        mapped: true,
        advice: "map the file into memory",
        ..BLOCKING
    },
    Row {
        engine: Engine::Splice,
        name: "splice",
        advice: "move blocks through a pipe with splice and vmsplice",
        ..BLOCKING
    },
    Row {
        engine: Engine::Null,
        name: "null",
        concurrency: Concurrency::Queue,
        does_io: false,
        queues_buffered: true,
        advice: "do no I/O",
        ..BLOCKING
    },
    Row {
        engine: Engine::Events,
        name: "events",
        concurrency: Concurrency::Queue,
        queues_buffered: true,
        advice: "wait for an event of each overlapped request",
        ..BLOCKING
    },
    Row {
        engine: Engine::Routines,
        name: "routines",
        concurrency: Concurrency::Queue,
        queues_buffered: true,
        advice: "issue requests with ReadFileEx and WriteFileEx, and let completion routines issue the next",
        ..BLOCKING
    },
    Row {
        engine: Engine::Port,
        name: "port",
        concurrency: Concurrency::Queue,
        queues_buffered: true,
        advice: "take the completions of overlapped requests from a completion port",
        ..BLOCKING
    },
];

/// For several outstanding requests, best first.
const PREFERRED: [Engine; 3] = [Engine::IoUring, Engine::Libaio, Engine::Threads];

impl Engine {
    /// In the order of the help.
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

    pub fn mapped() -> Engine {
        Engine::Mmap
    }

    fn row(self) -> &'static Row {
        &ENGINES[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Without a full stop.
    pub fn advice(self) -> &'static str {
        self.row().advice
    }

    /// Returns the best for several outstanding requests.
    pub fn asynchronous(engines: &[Engine]) -> Engine {
        PREFERRED.into_iter().find(|engine| engines.contains(engine)).unwrap_or(Engine::Threads)
    }

    /// Prefers blocking calls for one request.
    pub fn for_depth(depth: u32, engines: &[Engine]) -> Engine {
        if depth <= 1 { Engine::Sync } else { Engine::asynchronous(engines) }
    }

    /// Returns a sentence if this engine replaced the preferred one.
    pub fn fallback(self, engines: &[Engine]) -> Option<String> {
        let [preferred, others @ ..] = PREFERRED;
        let replaced = others.contains(&self) && !engines.contains(&preferred);
        replaced.then(|| format!("{preferred} is not available here, so {self} was used instead"))
    }

    /// Returns `None` if the engine is available or has no substitute.
    pub fn replacement(self, engines: &[Engine]) -> Option<Engine> {
        (self == PREFERRED[0] && !engines.contains(&self)).then(|| Engine::asynchronous(engines))
    }

    /// Returns whether one thread can keep several requests outstanding.
    pub fn is_async(self) -> bool {
        self.row().concurrency == Concurrency::Queue
    }

    pub fn max_depth(self) -> u32 {
        if self.row().concurrency == Concurrency::One { 1 } else { MAX_DEPTH }
    }

    pub fn workers(self, depth: u32) -> u32 {
        if self.has_workers() { depth } else { 1 }
    }

    pub fn has_workers(self) -> bool {
        self.row().concurrency == Concurrency::Workers
    }

    /// Returns whether I/O uses mapped memory: one file of fixed length, no direct I/O, no stripe.
    pub fn is_mapped(self) -> bool {
        self.row().mapped
    }

    pub fn does_io(self) -> bool {
        self.row().does_io
    }

    /// Returns whether only simulated machines have it.
    pub fn is_windows(self) -> bool {
        matches!(self, Engine::Events | Engine::Routines | Engine::Port)
    }

    pub fn takes_priorities(self) -> bool {
        self.row().priorities
    }

    /// Returns whether buffered requests are queued, not served on submission.
    pub fn queues_buffered(self) -> bool {
        self.row().queues_buffered
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
