//! Whole files on this computer: the executor of small-file and metadata workloads.

pub use crate::linux::files::{HostFiles, directory_facts, remove_leftovers};
