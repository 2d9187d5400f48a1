//! Ranks that exchange messages. Rank 0 leads; the others follow.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::{Duration, Instant};

const CHECK: Duration = Duration::from_millis(20);

/// One thread uses it; messages between two ranks arrive in order.
pub trait Group {
    /// From 0.
    fn rank(&self) -> usize;

    fn size(&self) -> usize;

    fn send(&self, to: usize, message: &[u8]) -> Result<(), GroupError>;

    /// `None` if no message arrives; fails if the rank is gone. `began` is the start of the first
    /// of several waits.
    fn receive_until(
        &self,
        from: usize,
        began: Instant,
        until: Instant,
    ) -> Result<Option<Vec<u8>>, GroupError>;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    #[error("rank {0} has ended")]
    Gone(usize),
    #[error("rank {from} sent a message that this halfpower does not understand: {why}")]
    Unexpected { from: usize, why: String },
    #[error("rank {0} did not answer")]
    Silent(usize),
    #[error("a rank has ended, and the others cannot exchange messages any more")]
    Stuck,
}

pub fn send(group: &impl Group, to: usize, message: &impl Serialize) -> Result<(), GroupError> {
    let bytes = serde_json::to_vec(message)
        .map_err(|error| GroupError::Unexpected { from: group.rank(), why: error.to_string() })?;
    group.send(to, &bytes)
}

/// Fails if `waits` returns false, or the rank is gone or sent something else.
pub fn receive<T: DeserializeOwned>(
    group: &impl Group,
    from: usize,
    mut waits: impl FnMut() -> bool,
) -> Result<T, GroupError> {
    let began = Instant::now();
    loop {
        if let Some(bytes) = group.receive_until(from, began, Instant::now() + CHECK)? {
            return serde_json::from_slice(&bytes)
                .map_err(|error| GroupError::Unexpected { from, why: error.to_string() });
        }
        if !waits() {
            return Err(GroupError::Silent(from));
        }
    }
}
