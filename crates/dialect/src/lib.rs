//! Parsers and reports of other tools, and work of several tasks on files.

mod calendar;
mod concurrent;
pub mod diskspd;
mod display;
pub mod fio;
pub mod ior;
pub mod iozone;
pub mod mdtest;
pub mod metadata;
mod parse;
pub mod postmark;
pub mod reading;
mod rows;
pub mod sqlio;
pub mod tasks;

pub use parse::joined;
