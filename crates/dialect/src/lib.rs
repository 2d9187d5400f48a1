//! Other tools' languages in and out: PostMark, IOzone, SQLIO, diskspd, fio.

mod asking;
mod calendar;
mod crew;
pub mod diskspd;
pub mod fio;
pub mod iozone;
pub mod metadata;
pub mod postmark;
pub mod sqlio;
mod warnings;
mod words;
