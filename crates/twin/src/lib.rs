//! Simulated computers in virtual time, for the request sources of real ones. The model is
//! mechanistic (a platter turns, a bus is held): published measurements should follow from these
//! causes (the crate `predict` compares the two).

mod advertised;
pub mod bus;
mod cpu;
pub mod description;
mod device;
mod error;
mod event;
mod file_cache;
mod file_server;
mod kernel;
pub mod knobs;
mod layers;
mod memory;
pub mod preset;
mod ram_cache;
mod run;
pub mod settings;
mod shape;
mod slab;
mod small_files;
mod twin;
mod units;
mod utilisation;
mod volume;
mod world;

pub use error::{Error, Result};
pub use file_cache::UnitMap;
pub use file_server::{FileClient, FileServer, Working};
pub use ram_cache::WritePolicy;
pub use settings::Setup;
pub use shape::Shape;
pub use small_files::TwinFiles;
pub use twin::{Target, Twin, Utilisation};
