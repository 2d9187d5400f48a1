//! The test program of the 1997 study, and others as simple: so many requests outstanding, in order or scattered, to a number of bytes.

use crate::{Error, Result, Target, Twin};
use machine::{Access, Allocation, Asker, Buffering, CacheState, Completion, Engine, Hint, Machine, Nanos, Next, Op, Request, Usage};
use serde::{Deserialize, Serialize};

/// The order of a program's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// From start to end, and again.
    Sequential,
    /// Scattered evenly over the region.
    Random,
}

/// What a program does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Percent of the requests that read.
    pub read_percent: u8,
    /// The order.
    pub order: Order,
    /// Request size.
    pub request_bytes: u32,
    /// Requests outstanding.
    pub depth: u32,
    /// First byte of the region.
    pub start: u64,
    /// Bytes of the region.
    pub region: u64,
    /// Bytes asked for in all.
    pub bytes: u64,
    /// Through the file-system cache, or past it.
    pub buffering: Buffering,
    /// What the cache is told.
    pub hint: Hint,
    /// State of the file's space.
    pub allocation: Allocation,
    /// Write everything back at the end, and count its time.
    pub sync_at_end: bool,
    /// Pause between a completion and the request that follows it.
    pub think_ns: Nanos,
}

impl Program {
    /// The study's program: a file of 100 MB from start to end, unbuffered.
    pub fn study(op: Op, request_bytes: u32, depth: u32) -> Self {
        Program {
            read_percent: if op == Op::Read { 100 } else { 0 },
            order: Order::Sequential,
            request_bytes,
            depth,
            start: 0,
            region: 100 << 20,
            bytes: 100 << 20,
            buffering: Buffering::Direct,
            hint: Hint::None,
            allocation: Allocation::Written,
            sync_at_end: false,
            think_ns: 0,
        }
    }

    /// Runs it on a volume.
    ///
    /// # Errors
    /// What the machine refuses.
    pub fn run(&self, twin: &Twin, target: &mut Target) -> Result<Outcome> {
        let access = Access {
            engine: Engine::IoUring,
            buffering: self.buffering,
            metadata_sync: false,
            hint: self.hint,
            allocation: self.allocation,
            cache: CacheState::Cold,
            sync_at_end: self.sync_at_end,
            region: (self.start, self.region),
            count_instructions: false,
        };
        let mut asker = Player::new(self);
        let usage = twin.run(target, &access, std::slice::from_mut(&mut asker))?;
        if asker.short {
            return Err(Error::Run(format!("the region from {} of {} bytes goes beyond the end of the volume", self.start, self.region)));
        }
        Ok(Outcome { bytes: asker.done, requests: asker.requests, latency_ns: asker.latency / asker.requests.max(1), usage })
    }
}

/// What a program's run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Bytes moved.
    pub bytes: u64,
    /// Requests done.
    pub requests: u64,
    /// Mean time of a request.
    pub latency_ns: Nanos,
    /// What the machine says.
    pub usage: Usage,
}

impl Outcome {
    fn seconds(&self) -> f64 {
        (self.usage.elapsed_ns + self.usage.sync_ns.unwrap_or(0)).max(1) as f64 * 1e-9
    }

    /// Throughput, synchronisation included.
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.seconds()
    }

    /// Requests per second, synchronisation included.
    pub fn iops(&self) -> f64 {
        self.requests as f64 / self.seconds()
    }

    /// Processor time per 2^20 bytes, in milliseconds.
    pub fn cpu_ms_per_mib(&self) -> f64 {
        self.usage.cpu.system_ns as f64 * 1e-6 / (self.bytes as f64 / f64::from(1 << 20))
    }
}

/// A program under way.
struct Player {
    read_percent: u64,
    random: bool,
    len: u64,
    depth: u32,
    start: u64,
    blocks: u64,
    next: u64,
    left: u64,
    think: Nanos,
    free: Vec<(Nanos, u32)>,
    issued: Vec<Nanos>,
    state: u64,
    flying: u32,
    done: u64,
    requests: u64,
    latency: Nanos,
    short: bool,
}

impl Player {
    fn new(program: &Program) -> Self {
        let len = u64::from(program.request_bytes);
        Player {
            read_percent: u64::from(program.read_percent),
            random: program.order == Order::Random,
            len,
            depth: program.depth,
            start: program.start,
            blocks: (program.region / len).max(1),
            next: 0,
            left: (program.bytes / len).max(1),
            think: program.think_ns,
            free: (0..program.depth).rev().map(|slot| (0, slot)).collect(),
            issued: vec![0; program.depth as usize],
            state: 0x5eed,
            flying: 0,
            done: 0,
            requests: 0,
            latency: 0,
            short: false,
        }
    }

    /// xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016.
    fn random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

impl Asker for Player {
    fn depth(&self) -> u32 {
        self.depth
    }

    fn max_request(&self) -> u32 {
        self.len as u32
    }

    fn writes(&self) -> bool {
        self.read_percent < 100
    }

    fn begin(&mut self, _now: Nanos) {}

    fn next(&mut self, now: Nanos) -> Next {
        if self.left == 0 {
            return if self.flying == 0 { Next::Done } else { Next::WaitForCompletion };
        }
        let Some(&(from, slot)) = self.free.last() else { return Next::WaitForCompletion };
        if from > now {
            return Next::WaitUntil(from);
        }
        self.free.pop();
        self.left -= 1;
        self.flying += 1;
        self.issued[slot as usize] = now;
        let block = if self.random { (self.random() >> 11) % self.blocks } else { self.next };
        self.next = (self.next + 1) % self.blocks;
        let read = self.read_percent == 100 || (self.read_percent > 0 && (self.random() >> 11) % 100 < self.read_percent);
        let op = if read { Op::Read } else { Op::Write };
        Next::Issue(Request { op, offset: self.start + block * self.len, len: self.len as u32, slot })
    }

    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.flying -= 1;
        self.requests += 1;
        self.latency += now - self.issued[completion.slot as usize];
        self.done += completion.result.max(0) as u64;
        self.short |= completion.result as u64 != self.len;
        self.free.push((now + self.think, completion.slot));
    }

    fn fill(&mut self, _request: &Request, _buffer: &mut [u8]) {}
}
