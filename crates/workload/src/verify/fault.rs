use super::Expected;
use machine::units::show_size;
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Bits differ from those written.
    Flipped,
    /// A block has parts of two generations.
    Torn,
    /// A valid block of another offset.
    Misdirected,
    /// Older than the last completed write.
    Lost,
    /// Valid in another run; this run's write never arrived.
    Stale,
    /// Written neither by this run nor one like it.
    Foreign,
}

impl FaultKind {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// `first_bit` counts from the fault's first byte, least significant bit first.
    Bits {
        first_bit: u32,
        bits: u32,
        generation: u32,
    },
    /// Valid for this offset and run.
    Generation(u32),
    /// One generation up to byte `at`, then another.
    Seam {
        before: u32,
        after: u32,
        at: u32,
    },
    /// One end is of a generation.
    Part {
        generation: u32,
        at: u32,
        first: bool,
    },
    /// Valid in this run for another byte offset.
    Offset {
        offset: u64,
        generation: u32,
    },
    /// Valid in another run.
    Seed(u64),
    Zeros,
    /// Data without a valid header.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    /// The first wrong unit's place in the target.
    pub offset: u64,
    /// Adjacent units of one block with the same fault.
    pub bytes: u64,
    pub expected: Expected,
    pub found: Found,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} block at offset {} ({}): ", self.kind, self.offset, show_size(self.bytes))?;
        match self.found {
            Found::Bits { first_bit, bits, generation } => {
                let (byte, bit) = (first_bit / 8, first_bit % 8);
                let are = if bits == 1 { "bit differs" } else { "bits differ" };
                write!(
                    f,
                    "{bits} {are} from generation {generation}, first bit {bit} of byte {byte}"
                )
            }
            Found::Generation(generation) => match self.kind {
                FaultKind::Torn => {
                    write!(f, "it has generation {generation} next to another, {}", self.expected)
                }
                FaultKind::Lost => {
                    write!(f, "it still has generation {generation}, {}", self.expected)
                }
                _ => write!(
                    f,
                    "it has generation {generation}, which was never written, {}",
                    self.expected
                ),
            },
            Found::Seam { before, after, at } => {
                write!(
                    f,
                    "generation {before} up to byte {at} and generation {after} from there on, {}",
                    self.expected
                )
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
                write!(f, "generation {generation} of offset {offset} is here, {}", self.expected)
            }
            Found::Seed(seed) => {
                write!(f, "a block of another run (seed {seed:#018x}) is here, {}", self.expected)
            }
            Found::Zeros => write!(f, "zeros, {}", self.expected),
            Found::Unknown if self.kind == FaultKind::Lost => {
                write!(f, "random data as a new file is filled with, {}", self.expected)
            }
            Found::Unknown => write!(f, "data that does not describe itself, {}", self.expected),
        }
    }
}
