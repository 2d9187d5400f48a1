//! The experiments, each a question and a grid. What they have in common is data; what each says is in `sentences`.

mod access;
mod concurrency;
mod layout;

use crate::design::{Design, Setting};

/// Every experiment's design, in the order of the report.
pub(crate) fn designs(setting: &Setting) -> Vec<Design> {
    vec![
        access::memory(setting),
        access::buffered(setting),
        access::unbuffered(setting),
        access::cost(setting),
        concurrency::depth(setting),
        concurrency::random(setting),
        layout::allocation(setting),
        layout::alignment(setting),
        concurrency::streams(setting),
        layout::location(setting),
        concurrency::stripe(setting),
        access::device_cache(setting),
    ]
}
