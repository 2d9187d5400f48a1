//! A group over MPI.

use crate::follow::{Noticed, Wait};
use crate::group::{Group, GroupError, pause_since};
use ::mpi::environment::Universe;
use ::mpi::point_to_point::{Destination, Source};
use ::mpi::request::StaticScope;
use ::mpi::topology::{Communicator, SimpleCommunicator};
use ::mpi::{Threading, initialize_with_threading};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
    calls: MpiCalls,
}

/// The calls of MPI by a rank. Each returns at once, but Open MPI 4.1 may abort within one if the
/// connection to a dead rank breaks, and then wait for the launcher until that kills the process.
#[derive(Debug, Clone, Default)]
pub struct MpiCalls {
    /// Odd during a call.
    begun_and_ended: Arc<AtomicU64>,
}

impl MpiCalls {
    fn call<T>(&self, call: impl FnOnce() -> T) -> T {
        self.begun_and_ended.fetch_add(1, Ordering::Relaxed);
        let result = call();
        self.begun_and_ended.fetch_add(1, Ordering::Relaxed);
        result
    }

    /// Returns whether one call lasts all this time, which passes meanwhile.
    pub fn one_lasts(&self, time: Duration) -> bool {
        let before = self.begun_and_ended.load(Ordering::Relaxed);
        std::thread::sleep(time);
        before % 2 == 1 && self.begun_and_ended.load(Ordering::Relaxed) == before
    }
}

impl MpiRank {
    /// Returns the calls of MPI, for another thread to watch.
    pub fn calls(&self) -> MpiCalls {
        self.calls.clone()
    }

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
            calls: MpiCalls::default(),
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
        let process = self.world.process_at_rank(to as i32);
        let mut request = self.calls.call(|| process.immediate_send(StaticScope, &*buffer));
        let wait = Wait::new(&self.is_interrupted, PATIENCE, &self.noticed);
        let began = Instant::now();
        loop {
            request = match self.calls.call(|| request.test()) {
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
        use ::mpi::point_to_point::MatchedReceiveVec;
        let process = self.world.process_at_rank(from as i32);
        let receive = || Some(process.immediate_matched_probe()?.matched_receive_vec::<u8>().0);
        Ok(self.calls.call(receive))
    }
}
