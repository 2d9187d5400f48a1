//! Looking: an answer for the terminal, an HTML page with figures, CSV for other programs.
//!
//! Everything here is a pure function of a [`study::Results`]: the same document gives the same text, byte for byte. Names that come from
//! the user or the machine may hold anything; control characters never reach a terminal and markup never reaches a page.

mod csv;
pub mod terminal;
mod words;

pub use csv::csv;

