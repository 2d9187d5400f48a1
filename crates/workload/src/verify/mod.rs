//! Self-describing blocks: each sector carries run, offset, generation and checksum. Verification
//! costs processor time and a lock per request: do not measure with it.

mod diagnosis;
mod fault;
mod generations;
#[cfg(test)]
mod interleavings;
mod log;
#[cfg(test)]
mod tests;
mod unit;

pub use fault::{Fault, FaultKind, Found};
pub use generations::Expected;
pub use log::{Log, LogError, Resumed};

use crate::rng::derive;
use crate::{Error, Workload};
use generations::Generations;
use machine::units::show_size;
use std::sync::{Mutex, MutexGuard, PoisonError};
use unit::{Label, UNIT};

/// A device's largest atomic write.
pub const UNIT_BYTES: u32 = 512;
/// They take 1 GiB of memory.
pub const MAX_BLOCKS: u64 = 1 << 28;

const PURPOSE_VERIFY: u64 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    base: u64,
    request: u32,
    blocks: u64,
}

impl Grid {
    fn block(&self, offset: u64) -> u64 {
        debug_assert!(
            offset >= self.base && (offset - self.base).is_multiple_of(u64::from(self.request))
        );
        (offset - self.base) / u64::from(self.request)
    }

    fn offset(&self, block: u64) -> u64 {
        self.base + block * u64::from(self.request)
    }
}

/// Writes self-describing blocks, remembers them, and checks reads. A run's streams share one.
/// Offsets are the workload's, and buffers are one request long.
///
/// ```
/// use workload::{Workload, verify::Verifier};
///
/// let writer = Workload { read_percent: 0, request_bytes: 4096, ..Workload::default() };
/// let verifier = Verifier::new(&writer, (0, 1 << 20), 1)?;
/// let mut block = vec![0; 4096];
/// let generation = verifier.fill(8192, &mut block);
/// verifier.wrote(8192, generation, true);
///
/// block[100] ^= 1;
/// let mut faults = Vec::new();
/// verifier.check(8192, &block, verifier.expected(8192), &mut faults);
/// assert_eq!(faults[0].kind.name(), "flipped");
/// # Ok::<(), workload::Error>(())
/// ```
#[derive(Debug)]
pub struct Verifier {
    /// Each run has its own, so that blocks of an earlier one are refused.
    seed: u64,
    grid: Grid,
    fill_seed: Option<u64>,
    generations: Mutex<Generations>,
}

impl Verifier {
    /// `region`: first byte and length. Never reuse `run`: use the time or a random number.
    /// Requests must be multiples of 512 B.
    pub fn new(workload: &Workload, region: (u64, u64), run: u64) -> Result<Self, Error> {
        let request = workload.request_bytes;
        if request == 0 || !request.is_multiple_of(UNIT_BYTES) {
            return Err(Error::refused(
                format!("request size {} with verification", show_size(u64::from(request))),
                format!("verified blocks are made of units of {UNIT_BYTES} B"),
                format!("use a multiple of {UNIT_BYTES} B"),
            ));
        }
        let blocks = region.1.saturating_sub(workload.offset_bytes) / u64::from(request);
        if blocks > MAX_BLOCKS {
            return Err(Error::refused(
                format!("{blocks} blocks with verification"),
                format!("verification keeps track of at most {MAX_BLOCKS}"),
                "use a smaller region or larger requests",
            ));
        }
        let grid = Grid { base: region.0 + workload.offset_bytes, request, blocks };
        Ok(Verifier {
            seed: derive(workload.seed, PURPOSE_VERIFY, run),
            grid,
            fill_seed: None,
            generations: Mutex::new(Generations::new(blocks)),
        })
    }

    /// The seed that filled the target from its start ([`machine::filled`]).
    #[must_use]
    pub fn filled_with(self, seed: Option<u64>) -> Verifier {
        Verifier { fill_seed: seed, ..self }
    }

    /// Returns the generation. With a [`Log`], log it before issuing.
    pub fn fill(&self, offset: u64, buffer: &mut [u8]) -> u32 {
        debug_assert_eq!(buffer.len(), self.grid.request as usize);
        let generation = self.lock().begin(self.grid.block(offset));
        for (i, unit) in buffer.chunks_exact_mut(UNIT).enumerate() {
            Label { seed: self.seed, offset: offset + (i * UNIT) as u64, generation }.write(unit);
        }
        generation
    }

    /// A failed write may leave anything.
    pub fn wrote(&self, offset: u64, generation: u32, ok: bool) {
        self.lock().end(self.grid.block(offset), generation, ok);
    }

    /// For [`Verifier::check`]: call it when issuing a read.
    pub fn expected(&self, offset: u64) -> Expected {
        self.lock().expected(self.grid.block(offset))
    }

    /// Checks a read for which `issued` was expected at its issue; returns the bytes judged. Not
    /// judged are blocks that this run did not write, or whose write failed or is the first and in
    /// flight.
    ///
    /// After overlaps each byte must belong to an allowed generation.
    pub fn check(
        &self,
        offset: u64,
        data: &[u8],
        issued: Expected,
        faults: &mut Vec<Fault>,
    ) -> u64 {
        let expected = self.lock().until_now(self.grid.block(offset), issued);
        diagnosis::check_block((self.seed, self.fill_seed), offset, data, &expected, faults)
    }

    pub fn next_written(&self, offset: u64) -> Option<u64> {
        let from = offset.saturating_sub(self.grid.base).div_ceil(u64::from(self.grid.request));
        self.lock().next_written(from).map(|block| self.grid.offset(block))
    }

    /// First byte, length and block length.
    pub fn area(&self) -> (u64, u64, u32) {
        (self.grid.base, self.grid.blocks * u64::from(self.grid.request), self.grid.request)
    }

    /// Ignores a panic elsewhere, which leaves the generations consistent.
    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
