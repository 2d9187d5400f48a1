//! Which generation each block may have.

use std::collections::HashMap;
use std::fmt;

/// The generations that a block may rightly have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The oldest; 0 is what lay there before the run.
    pub oldest: u32,
    /// The newest that was ever issued; 0 where the run never wrote.
    pub newest: u32,
    /// A write may be under way at the same time: even a sector may have parts of two generations.
    pub racing: bool,
}

impl Expected {
    /// Whether a unit of this generation is right.
    pub fn admits(&self, generation: u32) -> bool {
        generation > 0 && (self.oldest..=self.newest).contains(&generation)
    }

    /// What a read may find that was issued when `self` held and ended when `after` did.
    pub(crate) fn until(self, after: Expected) -> Expected {
        Expected {
            oldest: self.oldest,
            newest: after.newest,
            racing: self.racing || after.racing || self.newest != after.newest,
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.oldest, self.newest) {
            (_, 0) => write!(f, "nothing was written there"),
            (oldest, newest) if oldest == newest => write!(f, "generation {newest} was written"),
            (oldest, newest) => write!(f, "any of the generations {oldest} to {newest} may be there"),
        }
    }
}

/// A block whose content is not certain.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Oldest generation that may be there.
    oldest: u32,
    /// First write of those that overlap in time.
    first: u32,
    /// Writes issued and not ended.
    in_flight: u32,
    /// One of them failed: it may or may not have reached the target.
    failed: bool,
}

/// The generation of every block of a region: 4 bytes a block, and an entry for each block that is uncertain.
///
/// A block is uncertain while a write of it is in flight; after writes of it overlapped in time, because their order is not
/// known; after a failed write; and after a kill. The next write that overlaps no other makes it certain again.
#[derive(Debug, Clone)]
pub struct Generations {
    /// Newest generation issued.
    newest: Vec<u32>,
    open: HashMap<u64, Open>,
}

impl Generations {
    /// `blocks` blocks, none written.
    pub fn new(blocks: u64) -> Self {
        Generations { newest: vec![0; blocks as usize], open: HashMap::new() }
    }

    /// A write of `block` is about to be issued: its generation. After 2^32 - 1 writes of one block the number stays.
    pub fn begin(&mut self, block: u64) -> u32 {
        let generation = self.newest[block as usize].saturating_add(1);
        self.begin_as(block, generation);
        generation
    }

    /// A write of `block` with this generation is about to be issued (or was, in a log).
    pub(crate) fn begin_as(&mut self, block: u64, generation: u32) {
        let newest = &mut self.newest[block as usize];
        let open =
            self.open.entry(block).or_insert(Open { oldest: *newest, first: generation, in_flight: 0, failed: false });
        if open.in_flight == 0 {
            open.first = generation;
            open.failed = false;
        }
        open.first = open.first.min(generation);
        open.in_flight += 1;
        *newest = generation.max(*newest);
    }

    /// A write of `block` ended; `ok` says whether it is known to have been done in full.
    pub fn end(&mut self, block: u64, ok: bool) {
        let Some(open) = self.open.get_mut(&block) else { return };
        open.in_flight = open.in_flight.saturating_sub(1);
        open.failed |= !ok;
        if open.in_flight > 0 || open.failed {
            return;
        }
        if open.first == self.newest[block as usize] {
            self.open.remove(&block);
        } else {
            open.oldest = open.first;
        }
    }

    /// What `block` may have now.
    pub fn expected(&self, block: u64) -> Expected {
        let newest = self.newest[block as usize];
        match self.open.get(&block) {
            None => Expected { oldest: newest, newest, racing: false },
            Some(open) => Expected { oldest: open.oldest, newest, racing: open.in_flight > 0 },
        }
    }

    /// `block` has this generation and no other, as a log says.
    pub(crate) fn settle(&mut self, block: u64, generation: u32) {
        self.newest[block as usize] = generation;
        self.open.remove(&block);
    }

    /// Everything still in flight will never be heard of: the process was killed.
    pub(crate) fn abandon(&mut self) {
        for open in self.open.values_mut().filter(|open| open.in_flight > 0) {
            open.in_flight = 0;
            open.failed = true;
        }
    }

    /// The first block from `from` on that was ever written (or begun).
    pub fn next_written(&self, from: u64) -> Option<u64> {
        let rest = self.newest.get(from as usize..)?;
        rest.iter().position(|&generation| generation > 0).map(|skipped| from + skipped as u64)
    }
}
