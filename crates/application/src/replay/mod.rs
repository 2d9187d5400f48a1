//! Replays a trace with its dependencies: a request starts when as many earlier ones of its thread
//! have ended as in the recording, and the thread's pause is over.

mod at_devices;
mod document;
mod fio;
mod growth;
mod run;
mod script;
mod source;

pub use document::{ClassResult, Quantity, ReplayDocument, SCHEMA, Skipped, schema};
pub use fio::{fio_job, fio_log};
pub use run::{Cache, Layout, Pace, Settings, prepare, replay};
pub use script::{Class, FileScript, OpKind, Script};
pub use source::ReplaySource;

use apptrace::foreign::ForeignError;

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Trace(#[from] ForeignError),
    #[error("{0}")]
    Unsuitable(String),
    #[error(transparent)]
    Machine(#[from] machine::Error),
}

#[cfg(test)]
mod tests;
