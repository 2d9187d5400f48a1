use crate::code::MAX_BLOCK_BYTES;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is not a trace of halfpower record: it does not begin with HPTRACE")]
    NotATrace,
    #[error("it has version {0} of the format, and this halfpower reads version 1")]
    Version(u8),
    #[error("its header is damaged: {0}")]
    Header(String),
    #[error("block {block} is damaged: its checksum differs")]
    Checksum { block: u64 },
    #[error("block {block} has {bytes} bytes, and a block has at most {MAX_BLOCK_BYTES}")]
    BlockBytes { block: u64, bytes: u64 },
    #[error("block {block} is damaged: {what}")]
    Invalid { block: u64, what: &'static str },
}

pub type Result<T> = std::result::Result<T, Error>;
