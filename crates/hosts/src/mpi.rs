//! A group over MPI.

use crate::follow::{Noticed, Wait};
use crate::group::{Group, GroupError};
use crate::patience;
use ::mpi::environment::Universe;
use ::mpi::point_to_point::{Destination, MatchedReceiveVec, Source};
use ::mpi::request::StaticScope;
use ::mpi::topology::{Communicator, SimpleCommunicator};
use ::mpi::{Threading, initialize_with_threading};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const CHECK: Duration = Duration::from_millis(50);

/// A given-up call that takes longer never returns.
const STUCK: Duration = Duration::from_millis(100);

/// Shorter waits do not sleep, so that a clock's round trip is short.
const SPIN: Duration = Duration::from_micros(300);

/// Naps grow with the wait: many waiting ranks must not take a processor from the storage or
/// another rank.
const NAPS: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(2)];
const NAP_SHARE: u32 = 64;

/// Only one thread calls MPI. Open MPI 4.1 may abort within a call if the connection to a dead rank
/// breaks, and wait until the launcher kills the process; meanwhile the rank's owner can save
/// results and remove files.
pub struct MpiRank {
    rank: usize,
    size: usize,
    calls: Sender<Call>,
    answers: Receiver<Result<Option<Vec<u8>>, GroupError>>,
    thread: Option<JoinHandle<()>>,
    is_interrupted: fn() -> bool,
    noticed: Noticed,
    gives_up: Arc<AtomicBool>,
    is_stuck: Cell<bool>,
}

/// The thread that calls MPI answers each order but the last.
enum Call {
    Send(usize, Vec<u8>),
    Receive { from: usize, began: Instant, until: Instant },
    Leave,
}

impl MpiRank {
    /// Fails if MPI was initialised before or lets no other thread run. An interrupt ends the wait
    /// for a rank that takes no message.
    pub fn new(is_interrupted: fn() -> bool) -> Result<MpiRank, String> {
        let (calls, orders) = channel();
        let (answer, answers) = channel();
        let (begin, begun) = channel();
        let gives_up = Arc::new(AtomicBool::new(false));
        let given_up = Arc::clone(&gives_up);
        let serve = move || match initialize() {
            Ok(universe) => {
                let world = universe.world();
                let _ = begin.send(Ok((world.rank() as usize, world.size() as usize)));
                let service = Service { world, is_given_up: &given_up };
                if service.answer_all(&orders, &answer) {
                    // MPI's own end would wait for a lost rank forever.
                    std::mem::forget(universe);
                }
            }
            Err(why) => {
                let _ = begin.send(Err(why));
            }
        };
        let thread = std::thread::Builder::new()
            .name("mpi".into())
            .spawn(serve)
            .map_err(|error| format!("cannot start a thread for MPI: {error}"))?;
        let (rank, size) = begun.recv().map_err(|_| "MPI ended the thread that started it")??;
        Ok(MpiRank {
            rank,
            size,
            calls,
            answers,
            thread: Some(thread),
            is_interrupted,
            noticed: Noticed::default(),
            gives_up,
            is_stuck: Cell::new(false),
        })
    }

    /// Does not wait for the others, because one is lost.
    pub fn leave(mut self) {
        let _ = self.calls.send(Call::Leave);
        self.thread = None;
    }

    fn call(&self, call: Call) -> Result<Option<Vec<u8>>, GroupError> {
        self.gives_up.store(false, Ordering::Relaxed);
        if self.is_stuck.get() || self.calls.send(call).is_err() {
            return Err(GroupError::Stuck);
        }
        let wait = Wait::new(&self.is_interrupted, patience::MESSAGE, &self.noticed);
        let mut time = CHECK;
        loop {
            match self.answers.recv_timeout(time) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Timeout) if wait.goes_on() => {}
                Err(RecvTimeoutError::Timeout) if time == CHECK => {
                    self.gives_up.store(true, Ordering::Relaxed);
                    time = STUCK;
                }
                Err(_) => {
                    self.is_stuck.set(true);
                    return Err(GroupError::Stuck);
                }
            }
        }
    }
}

impl Drop for MpiRank {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // The thread ends MPI when no order can come any more.
        self.calls = channel().0;
        if !self.is_stuck.get() {
            let _ = thread.join();
        }
    }
}

impl Group for MpiRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, to: usize, message: &[u8]) -> Result<(), GroupError> {
        self.call(Call::Send(to, message.to_vec())).map(drop)
    }

    fn receive_until(
        &self,
        from: usize,
        began: Instant,
        until: Instant,
    ) -> Result<Option<Vec<u8>>, GroupError> {
        self.call(Call::Receive { from, began, until })
    }
}

fn initialize() -> Result<Universe, String> {
    let (universe, level) = initialize_with_threading(Threading::Funneled)
        .ok_or("MPI is already initialised in this process")?;
    if level < Threading::Funneled {
        return Err(format!(
            "the MPI library supports only the thread level {level:?}, and halfpower needs MPI_THREAD_FUNNELED; use a library built with threads"
        ));
    }
    Ok(universe)
}

fn pause_since(began: Instant) {
    let waited = began.elapsed();
    if waited < SPIN {
        std::thread::yield_now();
    } else {
        let [first, longest] = NAPS;
        std::thread::sleep((waited / NAP_SHARE).clamp(first, longest));
    }
}

struct Service<'s> {
    world: SimpleCommunicator,
    is_given_up: &'s AtomicBool,
}

impl Service<'_> {
    /// Returns whether the rank leaves the others.
    fn answer_all(
        &self,
        calls: &Receiver<Call>,
        answers: &Sender<Result<Option<Vec<u8>>, GroupError>>,
    ) -> bool {
        for call in calls {
            let answer = match call {
                Call::Send(to, message) => self.send(to, message).map(|()| None),
                Call::Receive { from, began, until } => Ok(self.receive(from, began, until)),
                Call::Leave => return true,
            };
            if answers.send(answer).is_err() {
                break;
            }
        }
        false
    }

    fn send(&self, to: usize, message: Vec<u8>) -> Result<(), GroupError> {
        let buffer: &'static mut [u8] = Box::leak(message.into());
        let place: *mut [u8] = buffer;
        let process = self.world.process_at_rank(to as i32);
        let mut request = process.immediate_send(StaticScope, &*buffer);
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
            if self.is_given_up.load(Ordering::Relaxed) {
                // MPI may still use the buffer: it stays.
                std::mem::forget(request);
                return Err(GroupError::Silent(to));
            }
            pause_since(began);
        }
    }

    fn receive(&self, from: usize, began: Instant, until: Instant) -> Option<Vec<u8>> {
        let process = self.world.process_at_rank(from as i32);
        loop {
            if let Some(message) = process.immediate_matched_probe() {
                return Some(message.matched_receive_vec::<u8>().0);
            }
            if Instant::now() >= until {
                return None;
            }
            pause_since(began);
        }
    }
}
