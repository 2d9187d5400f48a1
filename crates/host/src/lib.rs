//! This computer, behind one face: nothing above this crate names an operating system.
//!
//! [`Host`] is the [`machine::Machine`] that serves requests through the kernel. What every system shares stands here:
//! the serving loops, the start of the streams, stripes, buffers, the rules of test files. A system's own folder has
//! its engines, facts, counters and calls: `linux/` so far. Elsewhere the crate builds, and [`Host`] says that it
//! cannot measure.

// Without a system below them nothing uses the loops.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod arena;
mod cleanup;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;
pub mod parity;
mod pause;
mod raid5;
mod reaping;
mod run_streams;
mod serve;
#[cfg(test)]
mod serve_faults;
mod session;
mod stripe;
mod test_file;

pub use cleanup::{Cleanup, cleanup, watch_cleanup};
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Host, HostTarget};
#[cfg(target_os = "linux")]
pub use linux::{
    DEFAULT_CHUNK, Host, HostTarget, counters, facts, files, is_endless, is_ignored, kept_bytes, knobs,
    remove_leftovers, stack_limit, waiting_threads,
};
