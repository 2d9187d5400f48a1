//! A request source with a fixed number outstanding, and helpers.

#![allow(dead_code)] // Each test file uses a part of it.

use machine::{
    Access, Allocation, Buffering, CacheState, Completion, Engine, Hint, Machine, Memory, Nanos,
    Next, Op, Request, RequestSource, Stability, TargetSpec, Usage,
};
use twin::{Target, Twin};

#[derive(Clone)]
pub struct Plain {
    pub op: Op,
    pub len: u32,
    pub start: u64,
    pub count: u64,
    pub depth: u32,
    pub checks: bool,
    pub sync: Option<(u64, Stability)>,
    pub free: Vec<u32>,
    pub issued: u64,
    pub done: u64,
    pub unsynced: u64,
    pub max: u32,
    pub last: Nanos,
    pub syncs: Vec<Nanos>,
    pub targets: u32,
}

impl Plain {
    pub fn new(op: Op, len: u32, count: u64, depth: u32) -> Plain {
        let free = (0..depth).collect();
        Plain {
            op,
            len,
            start: 0,
            count,
            depth,
            checks: false,
            sync: None,
            free,
            issued: 0,
            done: 0,
            unsynced: 0,
            max: 0,
            last: 0,
            syncs: Vec::new(),
            targets: 1,
        }
    }
}

impl RequestSource for Plain {
    fn depth(&self) -> u32 {
        self.depth
    }
    fn max_request(&self) -> u32 {
        self.len
    }
    fn writes(&self) -> bool {
        self.op == Op::Write
    }
    fn sync_due(&self) -> Option<Stability> {
        let (every, stability) = self.sync?;
        (self.unsynced >= every).then_some(stability)
    }
    fn synced(&mut self, began: Nanos, ended: Nanos) {
        assert!(ended >= began);
        self.syncs.push(ended - began);
        self.unsynced = 0;
    }
    fn begin(&mut self, _now: Nanos) {}
    fn next(&mut self, _now: Nanos) -> Next {
        if self.issued == self.count {
            return if self.done == self.count { Next::Done } else { Next::WaitForCompletion };
        }
        let Some(slot) = self.free.pop() else { return Next::WaitForCompletion };
        let targets = u64::from(self.targets);
        let (target, offset) = (
            (self.issued % targets) as u32,
            self.start + self.issued / targets * u64::from(self.len),
        );
        self.issued += 1;
        self.max = self.max.max((self.issued - self.done) as u32);
        Next::Issue(Request { op: self.op, target, offset, len: self.len, slot })
    }
    fn complete(&mut self, completion: Completion, now: Nanos) {
        assert_eq!(completion.result, self.len as i32);
        self.free.push(completion.slot);
        (self.done, self.unsynced, self.last) = (self.done + 1, self.unsynced + 1, now);
    }
    fn fill(&mut self, _request: &Request, _buffer: &mut [u8]) {}
    fn checks(&self) -> bool {
        self.checks
    }
}

pub fn direct() -> Access {
    Access {
        engine: Engine::IoUring,
        buffering: Buffering::Direct,
        metadata_sync: false,
        hint: Hint::None,
        memory: Memory::Huge,
        reap: machine::Reap::default(),
        kernel_polls: false,
        allocation: Allocation::Written,
        cache: CacheState::Cold,
        sync_at_end: false,
        region: (0, 64 << 20),
    }
}

pub fn open(machine: &str) -> (Twin, Target) {
    let twin = Twin::from_name(machine).unwrap();
    let volume = twin.open(&TargetSpec::default()).unwrap();
    (twin, volume)
}

pub fn run(machine: &str, access: &Access, source: &Plain) -> (Usage, Plain) {
    let (twin, volume) = open(machine);
    let mut source = source.clone();
    let usage = twin.run_one(&volume, access, std::slice::from_mut(&mut source)).unwrap();
    (usage, source)
}
