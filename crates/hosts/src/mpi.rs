//! A group over MPI.

use crate::follow::{Noticed, Wait};
use crate::group::{Group, GroupError, pause_since};
use ::mpi::environment::Universe;
use ::mpi::point_to_point::{Destination, Source};
use ::mpi::request::StaticScope;
use ::mpi::topology::{Communicator, SimpleCommunicator};
use ::mpi::{Threading, initialize_with_threading};
use std::time::{Duration, Instant};

/// The time that a message may take after the user's interrupt, or the launcher's. A dead rank
/// never takes one, and the launcher kills the processes about a second after it has asked them to
/// end.
const PATIENCE: Duration = Duration::from_millis(400);

/// This process among those that mpirun or srun started.
pub struct MpiRank {
    world: SimpleCommunicator,
    universe: Option<Universe>,
    is_interrupted: fn() -> bool,
    noticed: Noticed,
}

impl MpiRank {
    /// Initialises MPI. Only the calling thread may use the rank; others may do I/O meanwhile. An
    /// interrupt ends the wait for a rank that takes no message.
    ///
    /// # Errors
    /// MPI was initialised before, or lets no other thread run.
    pub fn new(is_interrupted: fn() -> bool) -> Result<MpiRank, String> {
        let (universe, level) = initialize_with_threading(Threading::Funneled)
            .ok_or("MPI is already initialised in this process")?;
        if level < Threading::Funneled {
            return Err(format!(
                "the MPI library supports only the thread level {level:?}, and halfpower needs MPI_THREAD_FUNNELED; use a library built with threads"
            ));
        }
        Ok(MpiRank {
            world: universe.world(),
            universe: Some(universe),
            is_interrupted,
            noticed: Noticed::default(),
        })
    }

    /// Leaves without waiting for the others, if one of them is lost: MPI's own end would wait for
    /// it forever.
    pub fn leave(mut self) {
        std::mem::forget(self.universe.take());
    }
}

impl Group for MpiRank {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    fn size(&self) -> usize {
        self.world.size() as usize
    }

    fn send(&self, to: usize, message: &[u8]) -> Result<(), GroupError> {
        let buffer: &'static mut [u8] = Box::leak(message.into());
        let place: *mut [u8] = buffer;
        let mut request =
            self.world.process_at_rank(to as i32).immediate_send(StaticScope, &*buffer);
        let wait = Wait::new(&self.is_interrupted, PATIENCE, &self.noticed);
        let began = Instant::now();
        loop {
            request = match request.test() {
                Ok(_) => {
                    // SAFETY: the buffer was a box, and MPI does not use it any more.
                    drop(unsafe { Box::from_raw(place) });
                    return Ok(());
                }
                Err(request) => request,
            };
            if !wait.goes_on() {
                // MPI may still use the buffer: it stays.
                std::mem::forget(request);
                return Err(GroupError::Silent(to));
            }
            pause_since(began);
        }
    }

    fn try_receive(&self, from: usize) -> Result<Option<Vec<u8>>, GroupError> {
        let probed = self.world.process_at_rank(from as i32).immediate_matched_probe();
        Ok(probed.map(|message| {
            use ::mpi::point_to_point::MatchedReceiveVec;
            message.matched_receive_vec::<u8>().0
        }))
    }
}
