//! Parsers and reports of other tools: PostMark, IOzone, SQLIO, diskspd, fio, IOR, mdtest.

mod calendar;
mod concurrent;
pub mod diskspd;
mod display;
pub mod fio;
pub mod ior;
pub mod iozone;
pub mod mdtest;
mod parse;
pub mod postmark;
pub mod reading;
mod rows;
pub mod sqlio;
pub mod tasks;

pub use parse::joined;
