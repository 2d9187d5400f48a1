//! A program's recorded requests, and their file.

mod code;
mod error;
mod event;
pub mod foreign;
mod header;
mod reader;
mod writer;

pub use error::{Error, Result};
pub use event::{
    Access, Event, Index, Interface, Kind, OpenFile, Renamed, Request, Thread, TracedFile,
};
pub use header::{Header, Summary};
pub use reader::TraceReader;
pub use writer::TraceWriter;
