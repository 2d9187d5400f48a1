//! [`study()`] runs every experiment that fits target and time.

mod advice;
mod answer;
mod case;
mod checklist;
mod command;
mod conclusion;
mod confirm;
mod context;
mod crossings;
mod decisive;
mod doubts;
mod experiments;
mod figures;
mod findings;
mod found;
mod grid;
mod ladder;
mod long_writes;
mod models;
mod other_target;
mod plan;
mod probe;
mod ratios;
mod roles;
mod sampler;
mod schedule;
mod sentences;
mod study;
mod sustain;
#[cfg(test)]
mod tests;
mod trial;
mod verdict;

pub use experiments::experiment_ids;
pub use plan::{Effort, Plan};
pub use sampler::Progress;
pub use study::study;
pub use verdict::limit_of;
