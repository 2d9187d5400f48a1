//! Which request a stream issues next.

use crate::permutation::Permutation;
use crate::rng::{below, derive, hash};
use crate::zipf::Zipf;
use crate::{Error, Pattern, Workload};
use machine::Op;
use machine::units::show_size;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a seed is for; see [`derive`].
mod purpose {
    /// The order of a random pattern, and the draws of the others.
    pub const ORDER: u64 = 1;
    /// Where Zipf's popular blocks lie: the same for every stream.
    pub const SCATTER: u64 = 2;
    /// Read or write.
    pub const MIX: u64 = 3;
}

/// Where a sequence stands.
#[derive(Debug, Clone)]
pub enum Cursor {
    /// In this sequence alone.
    Own,
    /// In a counter that several threads of one stream share: together they ask what one thread would have asked.
    Shared(Arc<AtomicU64>),
}

/// The endless sequence of requests of one stream: a pure function of the seed, the stream and the index of the request.
///
/// [`Pattern::Seq`], [`Pattern::Backward`] and [`Pattern::Stride`] give each of several streams a contiguous part of the region of its
/// own; the other patterns give every stream the whole region, each in an order of its own. What is left at the region's end
/// when no whole request fits is not visited.
#[derive(Debug, Clone)]
pub struct Sequence {
    /// Index of the next request, for [`Cursor::Own`].
    index: u64,
    shared: Option<Arc<AtomicU64>>,
    /// Index of the first request of the current pass.
    pass_start: u64,
    /// Requests in a pass; patterns that draw with repetition have one endless pass.
    pass_len: u64,
    pass: u64,
    /// Blocks that this stream visits.
    blocks: u64,
    /// Byte offset of block 0.
    base: u64,
    request: u32,
    order: Order,
    mix: Mix,
    /// What every request does, where that is one thing and the cursor is the sequence's own.
    plain: Option<Op>,
    seed: u64,
}

/// How an index becomes a block.
#[derive(Debug, Clone)]
enum Order {
    Forward,
    Backward,
    Random(Permutation),
    Stride(Stride),
    Zipf(Box<(Zipf, Permutation)>),
    HotCold { hot: u64, access: u64 },
}

/// How an index becomes a read or a write.
#[derive(Debug, Clone, Copy)]
enum Mix {
    Always(Op),
    /// Reads where the random number is below the threshold.
    Mixed {
        threshold: u64,
        seed: u64,
    },
}

/// `n` blocks visited with a step: the blocks 0, step, 2 step, ..., then 1, 1 + step, ...
#[derive(Debug, Clone, Copy)]
struct Stride {
    step: u64,
    /// Rounds that have one visit more than the others: those that begin in the first `n % step` blocks.
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

/// `percent` of 2^64, for a comparison with 64 random bits.
fn share(percent: u8) -> u64 {
    ((u128::from(percent.min(100)) << 64) / 100).min(u128::from(u64::MAX)) as u64
}

/// First block and number of blocks of part `k` of `parts` of `n` blocks; the parts differ by one block at most.
fn part(n: u64, k: u32, parts: u32) -> (u64, u64) {
    let at = |k: u32| (u128::from(n) * u128::from(k) / u128::from(parts.max(1))) as u64;
    (at(k), at(k + 1) - at(k))
}

impl Pattern {
    /// Whether each stream has a part of the region of its own.
    pub fn is_divided(&self) -> bool {
        matches!(self, Pattern::Seq | Pattern::Backward | Pattern::Stride(_))
    }
}

impl Sequence {
    /// The requests of stream number `stream` of `workload` in the region that begins at byte `region.0` and is `region.1` bytes long.
    ///
    /// # Errors
    /// Not a single request fits into the stream's part of the region, or the pattern's numbers make no sense ([`Workload::check`]
    /// tells more).
    pub fn new(workload: &Workload, region: (u64, u64), stream: u32, cursor: Cursor) -> Result<Self, Error> {
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
        let (first, blocks) = if divided { part(all, stream, workload.threads) } else { (0, all) };
        if blocks == 0 || all < u64::from(if divided { workload.threads } else { 1 }) {
            return Err(workload.region_too_small(region.1));
        }
        let seed = derive(workload.seed, purpose::ORDER, u64::from(stream));
        let order = Order::new(workload, blocks, seed)?;
        let cursor_is_own = matches!(cursor, Cursor::Own);
        let shared = match cursor {
            Cursor::Own => None,
            Cursor::Shared(counter) => Some(counter),
        };
        let mix = match workload.read_percent {
            100.. => Mix::Always(Op::Read),
            0 => Mix::Always(Op::Write),
            percent => Mix::Mixed { threshold: share(percent), seed: derive(workload.seed, purpose::MIX, u64::from(stream)) },
        };
        let endless = matches!(order, Order::Zipf(_) | Order::HotCold { .. });
        Ok(Sequence {
            index: 0,
            shared,
            pass_start: 0,
            pass_len: if endless { u64::MAX } else { blocks },
            pass: 0,
            blocks,
            base: region.0 + workload.offset_bytes + first * request,
            request: workload.request_bytes,
            order,
            plain: match (mix, cursor_is_own) {
                (Mix::Always(op), true) => Some(op),
                _ => None,
            },
            mix,
            seed,
        })
    }

    /// The next request: what, at which byte offset, how many bytes. There is always one: after the last block it begins anew.
    #[inline]
    #[allow(clippy::should_implement_trait)] // An endless sequence has no `None` to say.
    pub fn next(&mut self) -> (Op, u64, u32) {
        // The two commonest kinds of sequence, alone on their cursor and all reads or all writes, stay in the caller's loop.
        if let Some(op) = self.plain {
            let place = self.index - self.pass_start;
            if place < self.pass_len {
                let block = match &self.order {
                    Order::Random(permutation @ Permutation::Mixer(_)) => permutation.at(place),
                    Order::Forward => place,
                    _ => return self.next_of_any(),
                };
                self.index += 1;
                return (op, self.base + block * u64::from(self.request), self.request);
            }
        }
        self.next_of_any()
    }

    /// [`Sequence::next`] of any kind.
    #[inline(never)]
    fn next_of_any(&mut self) -> (Op, u64, u32) {
        let index = match &self.shared {
            None => {
                let index = self.index;
                self.index = index + 1;
                index
            }
            Some(counter) => counter.fetch_add(1, Ordering::Relaxed),
        };
        let mut place = index - self.pass_start;
        if place >= self.pass_len {
            place = self.turn(place);
        }
        let block = match &self.order {
            Order::Forward => place,
            Order::Random(permutation) => permutation.at(place),
            Order::Backward => self.blocks - 1 - place,
            Order::Stride(stride) => stride.at(place),
            Order::Zipf(law) => law.1.at(law.0.draw(self.seed, index) - 1),
            Order::HotCold { hot, access } => hot_cold(self.seed, index, *hot, *access, self.blocks),
        };
        let op = match self.mix {
            Mix::Always(op) => op,
            Mix::Mixed { threshold, seed } if hash(seed, index) < threshold => Op::Read,
            Mix::Mixed { .. } => Op::Write,
        };
        (op, self.base + block * u64::from(self.request), self.request)
    }

    /// Begins the pass that the place falls into, counted from the current pass's start; returns the place in the new pass.
    ///
    /// With a shared cursor other threads may have taken whole passes in between.
    #[cold]
    #[inline(never)]
    fn turn(&mut self, place: u64) -> u64 {
        let passes = place / self.pass_len;
        self.pass += passes;
        self.pass_start += passes * self.pass_len;
        self.key();
        place % self.pass_len
    }

    /// Takes the key of the current pass.
    fn key(&mut self) {
        if let Order::Random(permutation) = &mut self.order {
            *permutation = Permutation::new(self.blocks, hash(self.seed, self.pass));
        }
    }

    /// Blocks of the request size that this stream visits: the length of a pass.
    pub fn len_blocks(&self) -> u64 {
        self.blocks
    }

    /// Byte offset of the first block, and bytes to the end of the last.
    pub fn span(&self) -> (u64, u64) {
        (self.base, self.blocks * u64::from(self.request))
    }

    /// A hash of the first `n` requests, wherever the sequence stands: equal fingerprints are equal sequences.
    pub fn fingerprint(&self, n: u64) -> u64 {
        let mut fresh = Sequence { index: 0, shared: None, pass_start: 0, pass: 0, ..self.clone() };
        fresh.key();
        (0..n).fold(u64::from(self.request), |sum, _| {
            let (op, offset, len) = fresh.next();
            hash(sum ^ offset, u64::from(len) << 1 | u64::from(op == Op::Write))
        })
    }
}

impl Order {
    fn new(workload: &Workload, blocks: u64, seed: u64) -> Result<Self, Error> {
        Ok(match workload.pattern {
            Pattern::Seq => Order::Forward,
            Pattern::Backward => Order::Backward,
            Pattern::Random => Order::Random(Permutation::new(blocks, hash(seed, 0))),
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
            Pattern::Zipf(theta) => {
                let scatter = Permutation::new(blocks, derive(workload.seed, purpose::SCATTER, 0));
                Order::Zipf(Box::new((Zipf::new(blocks, theta), scatter)))
            }
            Pattern::HotCold { hot_percent, access_percent } => {
                // Each side has a block at least, where there are two.
                let hot = (u128::from(blocks) * u128::from(hot_percent) + 50) / 100;
                Order::HotCold { hot: (hot as u64).clamp(1, (blocks - 1).max(1)), access: share(access_percent) }
            }
        })
    }
}

/// The block that request `index` of a hot/cold pattern goes to.
fn hot_cold(seed: u64, index: u64, hot: u64, access: u64, blocks: u64) -> u64 {
    let random = hash(seed, index);
    // A second mix, because the first number's size has been looked at.
    let place = hash(seed, random);
    if random < access || hot == blocks { below(place, hot) } else { hot + below(place, blocks - hot) }
}

#[cfg(test)]
mod tests;
