//! A group over MPI.

use crate::group::{Group, GroupError};
use ::mpi::environment::Universe;
use ::mpi::point_to_point::{Destination, Source};
use ::mpi::topology::{Communicator, SimpleCommunicator};
use ::mpi::{Threading, initialize_with_threading};

/// This process among those that mpirun or srun started.
pub struct MpiRank {
    world: SimpleCommunicator,
    universe: Option<Universe>,
}

impl MpiRank {
    /// Initialises MPI. Only the calling thread may use the rank; others may do I/O meanwhile.
    ///
    /// # Errors
    /// MPI was initialised before, or lets no other thread run.
    pub fn new() -> Result<MpiRank, String> {
        let (universe, level) = initialize_with_threading(Threading::Funneled)
            .ok_or("MPI is already initialised in this process")?;
        if level < Threading::Funneled {
            return Err(format!(
                "the MPI library supports only the thread level {level:?}, and halfpower needs MPI_THREAD_FUNNELED; use a library built with threads"
            ));
        }
        Ok(MpiRank { world: universe.world(), universe: Some(universe) })
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
        self.world.process_at_rank(to as i32).send(message);
        Ok(())
    }

    fn try_receive(&self, from: usize) -> Result<Option<Vec<u8>>, GroupError> {
        let probed = self.world.process_at_rank(from as i32).immediate_matched_probe();
        Ok(probed.map(|message| {
            use ::mpi::point_to_point::MatchedReceiveVec;
            message.matched_receive_vec::<u8>().0
        }))
    }
}
