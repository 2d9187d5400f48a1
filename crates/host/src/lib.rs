//! This computer, behind one interface: no crate above names an operating system. Each has a folder
//! (so far only `linux/`).

// Nothing uses the loops on an unsupported system.
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
use elsewhere as system;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Host, HostTarget};
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "linux")]
pub use linux::{
    DEFAULT_CHUNK, Host, HostTarget, HostTaskFile, HostTaskFiles, clock_space, counters, facts,
    file_system_space, files, is_endless, is_ignored, kept_bytes, knobs, process_space, record,
    remove_leftovers, stack_limit, waiting_threads, wear, zeros_in_file,
};
