//! The fault matrix: what halfpower promises where something goes wrong, and how each promise is tried.
//!
//! All of it is one table (`table.rs`). docs/reliability.md is made from it:
//! `UPDATE=1 cargo test -p halfpower --test faults page` writes it anew.

#[path = "../common/mod.rs"]
mod common;
mod fuse;
mod page;
mod play;
mod stage;
mod table;
