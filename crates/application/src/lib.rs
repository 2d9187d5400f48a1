//! A recorded application: replayed on a machine.

pub mod replay;
