use crate::permutation::Permutation;
use crate::rng::{below, derive, hash};
use crate::sizes::Varied;
use crate::skew::{Normal, SelfSimilar};
use crate::zipf::Zipf;
use crate::{Error, Pattern, Workload};
use machine::Op;
use machine::units::show_size;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests computed together share constants, branches and registers.
const BATCH: usize = 32;

mod purpose {
    pub const ORDER: u64 = 1;
    /// The same for every stream.
    pub const SCATTER: u64 = 2;
    pub const MIX: u64 = 3;
    pub const SIZE: u64 = 5;
}

#[derive(Debug, Clone)]
pub enum Cursor {
    Own,
    /// A stream's threads share the requests of one thread.
    Shared(Arc<AtomicU64>),
}

/// A stream's infinite requests: a pure function of the seed, the stream and the index.
///
/// With [`Pattern::Seq`], [`Pattern::Backward`] and [`Pattern::Stride`] each stream has a
/// contiguous part of the region, with [`Pattern::Columns`] some columns. [`Pattern::Together`]
/// needs one shared cursor. With other patterns each stream visits the whole region in its own
/// order. A remainder too small for a request is not visited.
///
/// ```
/// use workload::{Cursor, Pattern, Sequence, Workload};
///
/// let workload = Workload { pattern: Pattern::Random, request_bytes: 4096, ..Workload::default() };
/// let mut requests = Sequence::new(&workload, (0, 1 << 20), 0, Cursor::Own)?;
/// let mut offsets: Vec<u64> = (0..requests.len_blocks()).map(|_| requests.next().1).collect();
/// offsets.sort();
/// assert_eq!(offsets, (0..256).map(|block| block * 4096).collect::<Vec<u64>>());
/// # Ok::<(), workload::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sequence {
    place: u64,
    ready_to: u64,
    /// Offsets by place modulo [`BATCH`].
    ready: [u64; BATCH],
    ready_ops: [Op; BATCH],
    /// Fast path's end; 0: never used.
    short_to: u64,
    /// The pass's end, or 0.
    short_pass: u64,
    base: u64,
    request: u32,
    choice: Choice,
    varied: Option<Box<Varied>>,
    shared: Option<Arc<AtomicU64>>,
    pass_start: u64,
    /// Infinite for patterns with repetition.
    pass_len: u64,
    pass: u64,
    blocks: u64,
    order: Order,
    seed: u64,
}

#[derive(Debug, Clone)]
enum Order {
    Forward,
    Backward,
    Random(Permutation),
    Stride(Stride),
    Columns(Columns),
    Zipf(Box<(Zipf, Permutation)>),
    Uniform,
    HotCold { hot: u64, access: u64 },
    Pareto(Box<(SelfSimilar, Permutation)>),
    Normal(Box<(Normal, Option<Permutation>)>),
}

#[derive(Debug, Clone, Copy)]
struct Choice {
    op: Op,
    mixed: bool,
    /// Mixed streams read below this random number.
    threshold: u64,
    seed: u64,
}

impl Choice {
    fn new(workload: &Workload, stream: u32) -> Self {
        Choice {
            op: if workload.read_percent == 0 { Op::Write } else { Op::Read },
            mixed: (1..=99).contains(&workload.read_percent),
            threshold: share(workload.read_percent),
            seed: derive(workload.seed, purpose::MIX, u64::from(stream)),
        }
    }

    #[inline]
    fn at(&self, index: u64) -> Op {
        if !self.mixed {
            self.op
        } else if hash(self.seed, index) < self.threshold {
            Op::Read
        } else {
            Op::Write
        }
    }
}

/// Visits 0, step, 2 step, ..., then 1, 1 + step, ...
#[derive(Debug, Clone, Copy)]
struct Stride {
    step: u64,
    /// These first `n % step` rounds have one visit more.
    long_rounds: u64,
    /// Visits of a short round; at least 1.
    visits: u64,
}

impl Stride {
    fn new(n: u64, step: u64) -> Self {
        Stride { step, long_rounds: n % step, visits: n / step }
    }

    #[inline]
    fn at(&self, place: u64) -> u64 {
        let in_long = self.long_rounds * (self.visits + 1);
        let (round, visit) = if place < in_long {
            (place / (self.visits + 1), place % (self.visits + 1))
        } else {
            let rest = place - in_long;
            (self.long_rounds + rest / self.visits, rest % self.visits)
        };
        round + visit * self.step
    }
}

/// From `first` on, each from top to bottom.
#[derive(Debug, Clone, Copy)]
struct Columns {
    first: u64,
    rows: u64,
    row: u64,
}

impl Columns {
    #[inline]
    fn at(&self, place: u64) -> u64 {
        self.first + place / self.rows + place % self.rows * self.row
    }
}

/// `percent` of 2^64.
fn share(percent: u8) -> u64 {
    ((u128::from(percent.min(100)) << 64) / 100).min(u128::from(u64::MAX)) as u64
}

/// First block and length; lengths differ by at most one.
fn part(n: u64, k: u32, parts: u32) -> (u64, u64) {
    let at = |k: u32| (u128::from(n) * u128::from(k) / u128::from(parts.max(1))) as u64;
    (at(k), at(k + 1) - at(k))
}

impl Pattern {
    /// From start to end.
    pub fn is_sequential(&self) -> bool {
        matches!(self, Pattern::Seq | Pattern::Together)
    }

    /// Each stream has its own part of the region.
    pub fn is_divided(&self) -> bool {
        matches!(self, Pattern::Seq | Pattern::Backward | Pattern::Stride(_))
    }
}

impl Sequence {
    /// `region`: first byte and length.
    pub fn new(
        workload: &Workload,
        region: (u64, u64),
        stream: u32,
        cursor: Cursor,
    ) -> Result<Self, Error> {
        workload.check_pattern()?;
        let request = u64::from(workload.request_bytes);
        let all = region.1.saturating_sub(workload.offset_bytes) / request;
        let divided = workload.pattern.is_divided();
        if stream >= workload.threads {
            return Err(Error::refused(
                format!("stream {stream}"),
                format!("the workload has {} streams, numbered from 0", workload.threads),
                "ask for one of them",
            ));
        }
        let (first, mut blocks) =
            if divided { part(all, stream, workload.threads) } else { (0, all) };
        if blocks == 0 || all < u64::from(if divided { workload.threads } else { 1 }) {
            return Err(workload.region_too_small(region.1));
        }
        let seed = derive(workload.seed, purpose::ORDER, u64::from(stream));
        // With mixed sizes, the last stream also gets the remainder.
        let rest = if stream + 1 == workload.threads {
            region.1 - workload.offset_bytes - all * request
        } else {
            0
        };
        let varied = Varied::new(
            workload,
            blocks * request + rest,
            derive(workload.seed, purpose::SIZE, u64::from(stream)),
        );
        if let Some(varied) = varied.as_ref().filter(|_| !divided) {
            // Starting positions at which the largest request still ends within the region.
            blocks = (region.1 - workload.offset_bytes - request) / varied.unit + 1;
        }
        let mut order = Order::new(workload, blocks, seed)?;
        if let Order::Columns(table) = &mut order {
            let columns;
            (table.first, columns) = part(table.row, stream, workload.threads);
            blocks = columns * table.rows;
        }
        let endless = matches!(
            order,
            Order::Uniform
                | Order::Zipf(_)
                | Order::HotCold { .. }
                | Order::Pareto(_)
                | Order::Normal(_)
        );
        let pass_len = if endless { u64::MAX } else { blocks };
        let short_pass =
            if varied.is_none() && matches!(cursor, Cursor::Own) { pass_len } else { 0 };
        let choice = Choice::new(workload, stream);
        let mut sequence = Sequence {
            place: 0,
            ready_to: 0,
            ready: [0; BATCH],
            ready_ops: [choice.op; BATCH],
            short_to: short_pass,
            short_pass,
            base: region.0 + workload.offset_bytes + first * request,
            request: workload.request_bytes,
            choice,
            varied: varied.map(Box::new),
            shared: match cursor {
                Cursor::Own => None,
                Cursor::Shared(counter) => Some(counter),
            },
            pass_start: 0,
            pass_len,
            pass: 0,
            blocks,
            order,
            seed,
        };
        sequence.key();
        Ok(sequence)
    }

    /// Byte offset and bytes; wraps around.
    #[inline(always)]
    #[allow(clippy::should_implement_trait)] // An endless sequence has no `None` to say.
    pub fn next(&mut self) -> (Op, u64, u32) {
        match self.next_short() {
            Some(request) => request,
            None => self.next_slow(),
        }
    }

    /// Returns the next request if all have one size and the cursor is not shared, within a pass
    /// and [`Sequence::limit_short`]; `None`: call [`Sequence::next`].
    #[inline(always)]
    pub fn next_short(&mut self) -> Option<(Op, u64, u32)> {
        let place = self.place;
        if place >= self.ready_to && !self.prepare() {
            return None;
        }
        self.place = place + 1;
        let at = place as usize % BATCH;
        Some((self.ready_ops[at], self.ready[at], self.request))
    }

    /// Returns `false` where the fast path ends.
    #[inline(never)]
    fn prepare(&mut self) -> bool {
        if self.place >= self.short_to {
            return false;
        }
        let first = self.place - self.place % BATCH as u64;
        let count = (self.short_to - first).min(BATCH as u64) as usize;
        self.ready_to = first + count as u64;
        let (base, request) = (self.base, self.request);
        match &self.order {
            Order::Random(Permutation::Mixer(mixer)) => {
                mixer.places((first, count), (base, request), &mut self.ready);
            }
            _ => {
                for at in 0..count {
                    self.ready[at] = base + self.block(first + at as u64) * u64::from(request);
                }
            }
        }
        if self.choice.mixed {
            for at in 0..count {
                self.ready_ops[at] = self.choice.at(self.pass_start + first + at as u64);
            }
        }
        true
    }

    /// Limits [`Sequence::next_short`], until the next call, to requests that leave some of these
    /// bytes.
    #[inline]
    pub fn limit_short(&mut self, bytes: u64) {
        if self.short_pass > 0 {
            let requests = bytes.saturating_sub(1) / u64::from(self.request);
            self.short_to = self.short_pass.min(self.place.saturating_add(requests));
            self.ready_to = self.ready_to.min(self.short_to);
        }
    }

    /// In the pass; only if the cursor is not shared.
    pub fn place(&self) -> u64 {
        self.place
    }

    #[inline(never)]
    fn next_slow(&mut self) -> (Op, u64, u32) {
        let mut place = match &self.shared {
            None => self.place,
            Some(counter) => counter.fetch_add(1, Ordering::Relaxed) - self.pass_start,
        };
        if place >= self.pass_len {
            place = self.turn(place);
        }
        if self.shared.is_none() {
            self.place = place + 1;
        }
        let index = self.pass_start + place;
        let op = self.choice.at(index);
        if let (Some(varied), Order::Forward) = (&mut self.varied, &self.order) {
            let (place, size) = varied.follow(index, op);
            return (op, self.base + place, size);
        }
        let block = self.block(place);
        match &self.varied {
            None => (op, self.base + block * u64::from(self.request), self.request),
            Some(varied) => (op, self.base + block * varied.unit, varied.size(index, op)),
        }
    }

    #[inline]
    fn block(&self, place: u64) -> u64 {
        let index = self.pass_start + place;
        match &self.order {
            Order::Forward => place,
            Order::Random(permutation) => permutation.at(place),
            Order::Backward => self.blocks - 1 - place,
            Order::Stride(stride) => stride.at(place),
            Order::Columns(columns) => columns.at(place),
            Order::Zipf(law) => law.1.at(law.0.draw(self.seed, index) - 1),
            Order::HotCold { hot, access } => {
                hot_cold(self.seed, index, *hot, *access, self.blocks)
            }
            Order::Pareto(law) => law.1.at(law.0.draw(self.seed, index)),
            Order::Uniform => below(hash(self.seed, index), self.blocks),
            Order::Normal(law) => {
                let drawn = law.0.draw(self.seed, index);
                law.1.as_ref().map_or(drawn, |scatter| scatter.at(drawn))
            }
        }
    }

    /// Moves to the pass of `place`; returns the position in it. Threads that share the cursor may
    /// have completed whole passes.
    #[cold]
    #[inline(never)]
    fn turn(&mut self, place: u64) -> u64 {
        let passes = place / self.pass_len;
        self.pass += passes;
        self.pass_start += passes * self.pass_len;
        self.ready_to = 0;
        self.key();
        place % self.pass_len
    }

    fn key(&mut self) {
        if let Order::Random(permutation) = &mut self.order {
            *permutation = Permutation::new(self.blocks, hash(self.seed, self.pass));
        }
    }

    /// Counts a pass's requests, or starting positions if sizes differ.
    pub fn len_blocks(&self) -> u64 {
        self.blocks
    }

    /// The first offset, and the bytes to the last (largest) block's end; for [`Pattern::Columns`]
    /// of the whole table.
    pub fn span(&self) -> (u64, u64) {
        let blocks = if let Order::Columns(table) = &self.order {
            table.rows * table.row
        } else {
            self.blocks
        };
        let bytes = match (&self.varied, &self.order) {
            (Some(varied), Order::Forward) => varied.len(),
            (Some(varied), _) => (blocks - 1) * varied.unit + u64::from(self.request),
            (None, _) => blocks * u64::from(self.request),
        };
        (self.base, bytes)
    }

    /// Hashes the first `n` requests, regardless of the position.
    pub fn fingerprint(&self, n: u64) -> u64 {
        let mut fresh = Sequence {
            place: 0,
            ready_to: 0,
            short_to: 0,
            shared: None,
            pass_start: 0,
            pass: 0,
            ..self.clone()
        };
        fresh.key();
        fresh.varied.iter_mut().for_each(|varied| varied.rewind());
        (0..n).fold(u64::from(self.request), |sum, _| {
            let (op, offset, len) = fresh.next();
            hash(sum ^ offset, u64::from(len) << 1 | u64::from(op == Op::Write))
        })
    }
}

impl Order {
    fn new(workload: &Workload, blocks: u64, seed: u64) -> Result<Self, Error> {
        Ok(match workload.pattern {
            Pattern::Seq | Pattern::Together => Order::Forward,
            Pattern::Backward => Order::Backward,
            Pattern::Uniform => Order::Uniform,
            Pattern::Random => Order::Random(Permutation::new(blocks, seed)),
            Pattern::Stride(bytes) => {
                let step = bytes / u64::from(workload.request_bytes);
                if step >= blocks && blocks > 1 {
                    return Err(Error::refused(
                        format!("stride {}", show_size(bytes)),
                        format!(
                            "it leaves the {} that a stream visits after one request",
                            show_size(blocks * u64::from(workload.request_bytes))
                        ),
                        "use a shorter stride, a larger region or fewer streams",
                    ));
                }
                Order::Stride(Stride::new(blocks, step.min(blocks)))
            }
            Pattern::Columns(columns) => {
                let row = u64::from(columns);
                if blocks < row {
                    return Err(Error::refused(
                        format!(
                            "a region of {}",
                            show_size(blocks * u64::from(workload.request_bytes))
                        ),
                        format!("it does not hold one row of {columns} blocks"),
                        "use fewer columns, smaller requests or a larger target",
                    ));
                }
                Order::Columns(Columns { first: 0, rows: blocks / row, row })
            }
            Pattern::Zipf(theta) => {
                let scatter = Permutation::new(blocks, derive(workload.seed, purpose::SCATTER, 0));
                Order::Zipf(Box::new((Zipf::new(blocks, theta), scatter)))
            }
            Pattern::HotCold { hot_percent, access_percent } => {
                // Each side has at least one block, if there are two.
                let hot = (u128::from(blocks) * u128::from(hot_percent) + 50) / 100;
                Order::HotCold {
                    hot: (hot as u64).clamp(1, (blocks - 1).max(1)),
                    access: share(access_percent),
                }
            }
            Pattern::Pareto(h) => {
                let scatter = Permutation::new(blocks, derive(workload.seed, purpose::SCATTER, 0));
                Order::Pareto(Box::new((SelfSimilar::new(blocks, h), scatter)))
            }
            Pattern::Normal { deviation_percent, center_percent, scattered } => {
                let scatter = scattered
                    .then(|| Permutation::new(blocks, derive(workload.seed, purpose::SCATTER, 0)));
                Order::Normal(Box::new((
                    Normal::new(blocks, center_percent, deviation_percent),
                    scatter,
                )))
            }
        })
    }
}

fn hot_cold(seed: u64, index: u64, hot: u64, access: u64, blocks: u64) -> u64 {
    let random = hash(seed, index);
    // A second hash, because the first number already chose between hot and cold.
    let place = hash(seed, random);
    if random < access || hot == blocks {
        below(place, hot)
    } else {
        hot + below(place, blocks - hot)
    }
}

#[cfg(test)]
mod tests;
