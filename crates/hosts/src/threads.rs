//! A group within one process: each rank is a thread.

use crate::group::{Group, GroupError};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Instant;

pub struct ThreadRank {
    rank: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

/// A dropped rank is gone for the others.
pub fn thread_group(size: usize) -> Vec<ThreadRank> {
    let mut ranks: Vec<ThreadRank> =
        (0..size).map(|rank| ThreadRank { rank, to: Vec::new(), from: Vec::new() }).collect();
    for sender in 0..size {
        for receiver in 0..size {
            let (to, from) = channel();
            ranks[sender].to.push(to);
            ranks[receiver].from.push(from);
        }
    }
    ranks
}

impl Group for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn send(&self, to: usize, message: &[u8]) -> Result<(), GroupError> {
        self.to[to].send(message.to_vec()).map_err(|_| GroupError::Gone(to))
    }

    fn receive_until(
        &self,
        from: usize,
        _began: Instant,
        until: Instant,
    ) -> Result<Option<Vec<u8>>, GroupError> {
        match self.from[from].recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(GroupError::Gone(from)),
        }
    }
}
