//! Workload generation.

mod check;
mod data;
mod error;
mod free_map;
mod load;
mod load_step;
pub mod metadata;
mod options;
mod permutation;
pub mod rng;
mod sequence;
mod sizes;
mod skew;
pub mod smallfile;
mod spec;
#[cfg(test)]
mod testing;
pub mod verify;
mod zipf;

pub use check::{MAX_DEPTH, MAX_RATE_IOPS, MAX_REQUEST_BYTES, MAX_THREADS, check_direct};
pub use data::{BLOCK_BYTES, Filler};
pub use error::Error;
pub use free_map::FreeMap;
pub use load::{Interval, MAX_INTERVALS, parse_load, parse_load_file};
pub use load_step::{LoadStep, time_option};
pub use options::size_option;
pub use permutation::Permutation;
pub use sequence::{Cursor, Sequence};
pub use sizes::SizeDraw;
pub use skew::{Normal, SelfSimilar};
pub use spec::{ClientFiles, Data, OpKind, Pattern, SizeMix, SizeShare, Sizes, Stop, Workload};
pub use zipf::Zipf;
