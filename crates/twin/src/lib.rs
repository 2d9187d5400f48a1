//! Simulated computers in virtual time: disks, buses, caches, processor; presets and calibration.
//!
//! A [`Twin`] is a [`machine::Machine`]: the askers that run on this computer run on it too, in an event loop whose clock is
//! virtual. The model is one of causes: a platter that turns, a bus that is held, a processor that is busy. What a
//! published study measured on such a machine follows from them ([`validate`] sets the two side by side).

pub mod bus;
pub mod cloud;
mod cpu;
pub mod description;
pub mod disk;
mod error;
mod file_cache;
pub mod fit;
pub mod flash;
pub mod kernel;
mod layers;
pub mod preset;
pub mod program;
mod ram_cache;
mod run;
pub mod settings;
mod slab;
pub mod stack_distance;
pub mod trace;
mod twin;
pub mod validate;
pub mod virtio;
pub mod volume;
pub mod whatif;
mod world;

pub use error::{Error, Result};
pub use ram_cache::WritePolicy;
pub use settings::Setup;
pub use twin::{Target, Twin, Utilisation};
