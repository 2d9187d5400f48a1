//! Simulated computers in virtual time: disks, buses, caches, processor; presets.
//!
//! A [`Twin`] is a [`machine::Machine`]: the sources that run on this computer run on it too, in an event loop whose clock is
//! virtual. The model is one of causes: a platter that turns, a bus that is held, a processor that is busy. What a
//! published study measured on such a machine follows from them (the crate `predict` sets the two side by side).

pub mod bus;
mod cpu;
pub mod description;
mod device;
mod error;
mod event;
mod file_cache;
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
mod utilisation;
mod volume;
mod world;

pub use error::{Error, Result};
pub use file_cache::UnitMap;
pub use ram_cache::WritePolicy;
pub use settings::Setup;
pub use shape::Shape;
pub use small_files::TwinFiles;
pub use twin::{Target, Twin, Utilisation};
