//! Ranks that exchange messages. Rank 0 leads; the others follow.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::{Duration, Instant};

/// Waits shorter than this do not sleep, so that a clock's round trip is short.
const SPIN: Duration = Duration::from_millis(2);

/// The sleep between two checks after that grows with the wait, as a share of it, from the first of
/// these to the second: many waiting ranks must not take a processor from the storage or from
/// another rank.
const NAPS: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(2)];
const NAP_SHARE: u32 = 64;

/// Processes that were started together.
///
/// Only the thread that made the group uses it. Messages between two ranks arrive in the order in
/// which they were sent.
pub trait Group {
    /// Returns this process's number: from 0 to the size, exclusive.
    fn rank(&self) -> usize;

    /// Returns the number of processes.
    fn size(&self) -> usize;

    /// Sends bytes to a rank.
    ///
    /// # Errors
    /// The rank is gone.
    fn send(&self, to: usize, message: &[u8]) -> Result<(), GroupError>;

    /// Returns the next message from a rank; `None` if none has arrived.
    ///
    /// # Errors
    /// The rank is gone.
    fn try_receive(&self, from: usize) -> Result<Option<Vec<u8>>, GroupError>;
}

/// A message that cannot be exchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The process has ended.
    #[error("rank {0} has ended")]
    Gone(usize),
    /// The bytes are not the message that was expected.
    #[error("rank {from} sent a message that this halfpower does not understand: {why}")]
    Unexpected { from: usize, why: String },
    /// Waiting was given up.
    #[error("rank {0} did not answer")]
    Silent(usize),
}

/// Sends a message as JSON.
///
/// # Errors
/// The rank is gone.
pub fn send(group: &impl Group, to: usize, message: &impl Serialize) -> Result<(), GroupError> {
    let bytes = serde_json::to_vec(message)
        .map_err(|error| GroupError::Unexpected { from: group.rank(), why: error.to_string() })?;
    group.send(to, &bytes)
}

/// Waits for a message in JSON while `waits` returns true.
///
/// # Errors
/// The rank is gone, sent something else, or `waits` returned false.
pub fn receive<T: DeserializeOwned>(
    group: &impl Group,
    from: usize,
    mut waits: impl FnMut() -> bool,
) -> Result<T, GroupError> {
    let began = Instant::now();
    loop {
        if let Some(bytes) = group.try_receive(from)? {
            return serde_json::from_slice(&bytes)
                .map_err(|error| GroupError::Unexpected { from, why: error.to_string() });
        }
        if !waits() {
            return Err(GroupError::Silent(from));
        }
        pause_since(began);
    }
}

/// Pauses between two checks of a wait.
pub(crate) fn pause_since(began: Instant) {
    let waited = began.elapsed();
    if waited < SPIN {
        std::thread::yield_now();
    } else {
        let [first, longest] = NAPS;
        std::thread::sleep((waited / NAP_SHARE).clamp(first, longest));
    }
}
