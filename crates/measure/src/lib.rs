//! The driver, latency histograms, statistics, repeats, validity checks.
