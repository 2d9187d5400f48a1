//! Priorities of a stream's requests.

use crate::fio::options::cmdprio::CommandPriority;
use crate::fio::options::job_options::Options;
use machine::IoPriority;
use workload::rng;

const PURPOSE: u64 = 0xc3d9;

/// Priorities of a stream's requests, as kernel values.
#[derive(Debug)]
pub(crate) struct Priorities {
    asked: CommandPriority,
    seed: u64,
    drawn: u64,
    /// The job's priority.
    usual: u16,
    /// By slot; 0: the thread's.
    by_slot: Box<[u16]>,
}

impl Priorities {
    /// For a stream of this depth; `None`: no request has its own priority.
    pub(crate) fn of(options: &Options, depth: usize, seed: u64) -> Option<Priorities> {
        options.cmdprio.is_on().then(|| Priorities {
            asked: options.cmdprio.clone(),
            seed: rng::derive(seed, PURPOSE, 0),
            drawn: 0,
            usual: options.io_priority().map_or(0, IoPriority::bits),
            by_slot: vec![0; depth].into_boxed_slice(),
        })
    }

    pub(crate) fn draw(&mut self, slot: u32, side: usize, bytes: u32) {
        let draw = rng::below(rng::hash(self.seed, self.drawn), 100);
        self.drawn += 1;
        self.by_slot[slot as usize] = self.asked.of(side, bytes, draw).map_or(0, IoPriority::bits);
    }

    /// The value to pass to the kernel for the request in this slot.
    pub(crate) fn given(&self, slot: u32) -> u16 {
        self.by_slot[slot as usize]
    }

    /// The priority that takes effect.
    pub(crate) fn effective(&self, slot: u32) -> u16 {
        match self.given(slot) {
            0 => self.usual,
            own => own,
        }
    }
}
