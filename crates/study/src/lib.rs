//! Experiments as data, half-power points, cost models, findings.
//!
//! [`study()`] runs every experiment that fits the target and the time, and returns
//! [`results::Results`].

mod advice;
mod answer;
mod beside;
mod checklist;
mod command;
mod confirm;
mod crossings;
mod decisive;
mod doubts;
mod experiments;
mod figures;
mod findings;
mod found;
mod grid;
mod ladder;
mod models;
mod plan;
mod probe;
mod sampler;
mod schedule;
mod sentences;
mod setting;
mod study;
#[cfg(test)]
mod tests;
mod trial;
mod verdict;

pub use experiments::experiment_ids;
pub use plan::{Effort, Plan};
pub use sampler::Progress;
pub use study::study;
