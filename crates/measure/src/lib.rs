//! The driver, latency histograms, statistics, repeats, validity checks.

pub mod histogram;
pub mod stats;
