//! Generations that blocks may have.

use std::collections::HashMap;
use std::fmt;

/// A block's allowed generations, and mixtures if there are several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Before `from`, ascending; 0 is from before the run.
    earlier: Vec<u32>,
    /// All from this to `newest` are allowed.
    from: u32,
    /// 0 if the run never wrote there.
    pub newest: u32,
    /// A write failed and may have left any bytes.
    pub unknown: bool,
}

impl Expected {
    /// In any order.
    fn one_of(mut generations: Vec<u32>) -> Expected {
        generations.sort_unstable();
        generations.dedup();
        let newest = generations.pop().unwrap_or(0);
        let mut from = newest;
        while from > 0 && generations.last() == Some(&(from - 1)) {
            from -= 1;
            generations.pop();
        }
        Expected { earlier: generations, from, newest, unknown: false }
    }

    /// 0: from before the run.
    pub fn oldest(&self) -> u32 {
        *self.earlier.first().unwrap_or(&self.from)
    }

    pub fn admits(&self, generation: u32) -> bool {
        generation > 0
            && ((self.from..=self.newest).contains(&generation)
                || self.earlier.contains(&generation))
    }

    /// Overlapping requests may have mixed parts.
    pub fn mixed(&self) -> bool {
        self.oldest() < self.newest
    }

    /// The newest first.
    pub fn generations(&self) -> impl Iterator<Item = u32> {
        (self.from..=self.newest)
            .rev()
            .chain(self.earlier.iter().rev().copied())
            .filter(|generation| *generation > 0)
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.newest == 0 {
            return f.write_str("nothing was written there");
        }
        if !self.mixed() {
            return write!(f, "generation {} was written", self.newest);
        }
        if self.earlier.is_empty() {
            return write!(
                f,
                "any of the generations {} to {} may be there",
                self.from, self.newest
            );
        }
        let earlier: Vec<String> = self.earlier.iter().map(u32::to_string).collect();
        write!(
            f,
            "any of the generations {} and {} to {} may be there",
            earlier.join(", "),
            self.from,
            self.newest
        )
    }
}

#[derive(Debug, Clone, Copy)]
struct Write {
    generation: u32,
    began: u64,
    ended: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct Open {
    writes: Vec<Write>,
    events: u64,
    replaced_until: u64,
}

/// A region's state: 4 bytes per block, and an entry for each uncertain block.
///
/// A completed write replaces those that had ended before it started. A block is uncertain during a
/// write, after overlapping writes (their order is unknown), after a failed one, and after a kill,
/// until a write that overlaps no other.
#[derive(Debug, Clone)]
pub struct Generations {
    newest: Vec<u32>,
    open: HashMap<u64, Open>,
    /// Failed writes by block; few, because the first failure ends the run.
    failed: HashMap<u64, Vec<u32>>,
}

impl Generations {
    pub fn new(blocks: u64) -> Self {
        Generations {
            newest: vec![0; blocks as usize],
            open: HashMap::new(),
            failed: HashMap::new(),
        }
    }

    /// Registers a write before it is issued. Generations saturate at 2^32 - 1.
    pub fn begin(&mut self, block: u64) -> u32 {
        let generation = self.newest[block as usize].saturating_add(1);
        self.begin_as(block, generation);
        generation
    }

    pub(crate) fn begin_as(&mut self, block: u64, generation: u32) {
        let newest = &mut self.newest[block as usize];
        let open = self.open.entry(block).or_insert_with(|| Open {
            writes: vec![Write { generation: *newest, began: 0, ended: Some(0) }],
            ..Open::default()
        });
        open.events += 1;
        open.writes.push(Write { generation, began: open.events, ended: None });
        *newest = generation.max(*newest);
    }

    /// `ok`: known to have completed in full.
    pub fn end(&mut self, block: u64, generation: u32, ok: bool) {
        let Some(open) = self.open.get_mut(&block) else { return };
        let in_flight =
            |write: &&mut Write| write.generation == generation && write.ended.is_none();
        let Some(write) = open.writes.iter_mut().find(in_flight) else { return };
        open.events += 1;
        write.ended = Some(open.events);
        if !ok {
            self.failed.entry(block).or_default().push(generation);
            return;
        }
        open.replaced_until = open.replaced_until.max(write.began);
        let until = open.replaced_until;
        open.writes.retain(|write| write.ended.is_none_or(|ended| ended > until));
        if let [Write { generation, ended: Some(_), .. }] = open.writes[..]
            && generation == self.newest[block as usize]
        {
            self.open.remove(&block);
        }
    }

    pub fn expected(&self, block: u64) -> Expected {
        let expected = Expected::one_of(match self.open.get(&block) {
            None => vec![self.newest[block as usize]],
            Some(open) => open.writes.iter().map(|write| write.generation).collect(),
        });
        self.judged(block, expected)
    }

    /// With the writes since a read's issue, whose data it may have found.
    pub fn until_now(&self, block: u64, issued: Expected) -> Expected {
        self.judged(
            block,
            Expected { newest: issued.newest.max(self.expected(block).newest), ..issued },
        )
    }

    /// Marks `expected` if a write failed, unless any bytes may be right.
    fn judged(&self, block: u64, expected: Expected) -> Expected {
        let failed = |generations: &Vec<u32>| {
            generations.iter().any(|generation| expected.admits(*generation))
        };
        let unknown = expected.oldest() > 0 && self.failed.get(&block).is_some_and(failed);
        Expected { unknown, ..expected }
    }

    pub(crate) fn settle(&mut self, block: u64, generation: u32) {
        self.newest[block as usize] = generation;
        self.open.remove(&block);
        self.failed.remove(&block);
    }

    /// Ends writes in flight after a kill: any part of them may have arrived.
    pub(crate) fn abandon(&mut self) {
        for open in self.open.values_mut() {
            open.events += 1;
            open.writes
                .iter_mut()
                .for_each(|write| write.ended = write.ended.or(Some(open.events)));
        }
    }

    /// At or after `from`.
    pub fn next_written(&self, from: u64) -> Option<u64> {
        let rest = self.newest.get(from as usize..)?;
        rest.iter().position(|&generation| generation > 0).map(|skipped| from + skipped as u64)
    }
}
