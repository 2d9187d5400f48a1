//! Waits after the user's interrupt: a launcher kills processes about a second after it asked them
//! to end.

use std::time::Duration;

/// For a message: a dead rank never takes one.
#[cfg(feature = "mpi")]
pub(crate) const MESSAGE: Duration = Duration::from_millis(400);

/// Of rank 0, for the others' answers.
pub(crate) const LEADER: Duration = Duration::from_millis(500);

/// Of the others, for rank 0's next order: longer than rank 0 waits.
pub(crate) const FOLLOWER: Duration = Duration::from_millis(700);

/// All ranks have ended by then.
pub(crate) const END: Duration = Duration::from_millis(800);
