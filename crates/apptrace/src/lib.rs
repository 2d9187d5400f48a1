//! What a program asked of storage: the requests that were recorded, and the file that holds them.

mod event;
pub mod foreign;

pub use event::{Access, Event, Index, Interface, Kind, OpenFile, Request, Thread, TracedFile};
