//! This computer, behind one face: nothing above this crate names an operating system.
//!
//! [`Host`] is the [`machine::Machine`] that serves requests through the kernel.

#[cfg(not(target_os = "linux"))]
compile_error!("halfpower measures Linux so far; another system goes beside crates/host/src/linux/");

pub mod files;
mod linux;

pub use linux::{Host, HostTarget, free_bytes, remove_leftovers, reserve};
pub use linux::{counters, facts};
