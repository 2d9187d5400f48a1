//! Safe access to users' files. Only this crate, `host` and `cli` query owner and kind. An unknown
//! system opens no [`Directory`], and takes two files for the same one.

#[cfg(unix)]
mod directory;
#[cfg(not(unix))]
mod elsewhere;
mod input;
#[cfg(unix)]
mod unix;

#[cfg(unix)]
pub use directory::{Directory, MadeDirectory, remove_empty};
#[cfg(not(unix))]
use elsewhere as system;
#[cfg(not(unix))]
pub use elsewhere::{Directory, MadeDirectory, remove_empty};
pub use input::{Bounded, Input, check_regular, next_line, remember_read, text, was_read};
pub use system::{
    check_trusted, entries, has_same_owner, inode, is_block_device, is_own_open_file, is_pipe,
    is_same_file, is_stream, is_trusted, read_attribute, write_attribute,
};
#[cfg(unix)]
use unix as system;

use std::path::Path;

/// For directories such as the journal's.
pub const PRIVATE: u32 = 0o700;

pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
