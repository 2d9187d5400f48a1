//! What to ask: access patterns, mixes, streams, data, small-file generators.

mod spec;

pub use spec::{Data, Pattern, Stop, Workload};
