//! Times of a description, in nanoseconds.

use machine::Nanos;

pub(crate) fn us(value: f64) -> Nanos {
    (value * 1e3).round() as Nanos
}

pub(crate) fn ms(value: f64) -> Nanos {
    (value * 1e6).round() as Nanos
}
