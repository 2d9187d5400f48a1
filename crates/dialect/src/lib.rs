//! Parsers and reports of other tools: PostMark, IOzone, SQLIO, diskspd, fio.

mod calendar;
mod concurrent;
pub mod diskspd;
mod display;
pub mod fio;
pub mod iozone;
mod parse;
pub mod postmark;
pub mod reading;
mod rows;
pub mod sqlio;

pub use parse::joined;
