//! Pure functions of [`results::Results`] (or a [`validation::Page`]), byte for byte. Control
//! characters never reach a terminal, nor markup a page, whatever names contain. Pages need no
//! network.

mod advice;
mod classic;
pub mod compare;
mod course;
mod doubts;
pub mod foreign;
mod format;
pub mod history;
mod hosts;
mod html;
pub mod openmetrics;
mod pipeline;
mod plain;
mod plot;
pub mod profile;
pub mod pts;
mod sentences;
mod speeds;
pub mod surfaces;
pub mod sustained;
pub mod terminal;
pub mod tune;
pub mod validation;

pub use html::html;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the report cannot be drawn: {0}; this is a bug in halfpower, please report it with the results.json"
    )]
    Template(#[from] minijinja::Error),
    #[error(
        "the report's values cannot be written: {0}; this is a bug in halfpower, please report it with the results.json"
    )]
    Values(#[from] serde_json::Error),
}
