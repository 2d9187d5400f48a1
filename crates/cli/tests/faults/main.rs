//! The fault matrix: halfpower's promises for each fault, and the test of each. All of it is in one
//! table (`table.rs`), from which docs/reliability.md is generated: `UPDATE=1 cargo test -p
//! halfpower --test faults page` rewrites it.

#[path = "../common/mod.rs"]
mod common;
mod fuse;
mod page;
mod play;
mod stage;
mod table;
