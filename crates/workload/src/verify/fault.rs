//! What can be wrong with a block, in words.

use super::Expected;
use machine::units::show_size;
use std::fmt;

/// What is wrong with a stretch of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Bits differ from what was written.
    Flipped,
    /// One request's block has parts of two generations, though it was written as a whole.
    Torn,
    /// A sound block that was written elsewhere lies here.
    Misdirected,
    /// An older generation lies here than the last completed write's, or what was there before the first one.
    Lost,
    /// A sound block of another run lies here: this run's write never arrived.
    Stale,
    /// What lies here was never written by this run or one like it.
    Foreign,
}

impl FaultKind {
    /// The name in reports and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Flipped => "flipped",
            FaultKind::Torn => "torn",
            FaultKind::Misdirected => "misdirected",
            FaultKind::Lost => "lost",
            FaultKind::Stale => "stale",
            FaultKind::Foreign => "foreign",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What was found in place of the expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// `bits` bits differ from the given generation; the first is bit `first_bit` (counted from the fault's first byte, least
    /// significant bit first).
    Bits {
        /// Number of the first bit that differs.
        first_bit: u32,
        /// How many differ.
        bits: u32,
        /// The generation that the rest belongs to.
        generation: u32,
    },
    /// A sound unit of this place and run, of the given generation.
    Generation(u32),
    /// A unit that is one generation up to a byte and another from there on.
    Seam {
        /// The generation before the seam.
        before: u32,
        /// The generation from the seam on.
        after: u32,
        /// Bytes before the seam.
        at: u32,
    },
    /// A unit that is a generation's up to a byte or from there on, and nothing of this run in the rest.
    Part {
        /// The generation.
        generation: u32,
        /// Where it meets the rest.
        at: u32,
        /// It comes first.
        first: bool,
    },
    /// A sound unit of this run that belongs at another byte offset.
    Offset {
        /// Where it belongs.
        offset: u64,
        /// Its generation.
        generation: u32,
    },
    /// A sound unit of another run.
    Seed(u64),
    /// Nothing but zeros.
    Zeros,
    /// Data that does not describe itself.
    Unknown,
}

/// A stretch of data that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// Byte offset of the first wrong unit in the target.
    pub offset: u64,
    /// Length in bytes: neighbouring units of one block with the same fault are told as one.
    pub bytes: u64,
    /// What should be there.
    pub expected: Expected,
    /// What is there, in the first unit.
    pub found: Found,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} block at offset {} ({}): ", self.kind, self.offset, show_size(self.bytes))?;
        match self.found {
            Found::Bits { first_bit, bits, generation } => {
                let (byte, bit) = (first_bit / 8, first_bit % 8);
                let are = if bits == 1 { "bit differs" } else { "bits differ" };
                write!(f, "{bits} {are} from generation {generation}, first bit {bit} of byte {byte}")
            }
            Found::Generation(generation) => match self.kind {
                FaultKind::Torn => write!(f, "it has generation {generation} beside another, {}", self.expected),
                FaultKind::Lost => write!(f, "it still has generation {generation}, {}", self.expected),
                _ => write!(f, "it has generation {generation}, which was never written, {}", self.expected),
            },
            Found::Seam { before, after, at } => {
                write!(f, "generation {before} up to byte {at} and generation {after} from there on, {}", self.expected)
            }
            Found::Part { generation, at, first } => {
                let place = if first { "up to" } else { "from" };
                write!(
                    f,
                    "generation {generation} {place} byte {at} and nothing of this run in the rest, {}",
                    self.expected
                )
            }
            Found::Offset { offset, generation } => {
                write!(f, "generation {generation} of offset {offset} lies here, {}", self.expected)
            }
            Found::Seed(seed) => write!(f, "a block of another run (seed {seed:#018x}) lies here, {}", self.expected),
            Found::Zeros => write!(f, "zeros, {}", self.expected),
            Found::Unknown if self.kind == FaultKind::Lost => {
                write!(f, "random data as a new file is filled with, {}", self.expected)
            }
            Found::Unknown => write!(f, "data that does not describe itself, {}", self.expected),
        }
    }
}
