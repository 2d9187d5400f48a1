//! `--status-interval`: each stream answers at its next request or completion with a copy of its
//! statistics, so requests need no lock and none is half-counted.

use super::core::Core;
use super::filter::{Filter, ignores};
use super::outcome::recorded;
use super::result::{CloneStats, FioResult};
use super::status::Status;
use super::stream_stats::Done;
use super::unfinished::Unfinished;
use machine::{Nanos, Next};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest wait for streams without a request to end.
const ANSWER: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Board {
    asked: AtomicU64,
    posts: Mutex<Vec<Post>>,
}

#[derive(Debug, Clone, Default)]
struct Post {
    /// Maximum: the stream has ended.
    answers: u64,
    recorded: CloneStats,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    pub(crate) fn new(streams: usize) -> Board {
        Board { asked: AtomicU64::new(0), posts: Mutex::new(vec![Post::default(); streams]) }
    }

    fn answers(&self) -> Vec<CloneStats> {
        let question = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let until = Instant::now() + ANSWER;
        loop {
            let posts = lock(&self.posts);
            if posts.iter().all(|post| post.answers >= question) || Instant::now() >= until {
                return posts.iter().map(|post| post.recorded.clone()).collect();
            }
            drop(posts);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

pub(crate) struct Answers {
    board: Arc<Board>,
    stream: usize,
    answered: u64,
}

impl Answers {
    pub(crate) fn new(board: Arc<Board>, stream: usize) -> Answers {
        Answers { board, stream, answered: 0 }
    }

    #[inline(always)]
    fn look(&mut self, core: &Core, ended: bool) {
        let asked = self.board.asked.load(Ordering::Relaxed);
        if asked != self.answered || ended {
            self.answer(core, if ended { u64::MAX } else { asked });
        }
    }

    #[cold]
    #[inline(never)]
    fn answer(&mut self, core: &Core, answers: u64) {
        if self.answered != u64::MAX {
            self.answered = answers;
            let recorded = recorded(&core.stream, &core.record);
            lock(&self.board.posts)[self.stream] = Post { answers, recorded };
        }
    }
}

impl Filter for Answers {
    fn before(&mut self, core: &mut Core, now: Nanos) -> Option<Next> {
        self.look(core, core.in_flight == 0 && core.is_over(now));
        None
    }

    fn completed(&mut self, core: &mut Core, _slot: u32, _whole: bool, _done: Option<&Done>) {
        self.look(core, false);
    }

    ignores!(begin issued idle synced owes left fails read_back fill check finish);
}

pub(crate) struct Running<'a> {
    pub(crate) status: &'a Status<'a>,
    pub(crate) board: Arc<Board>,
    pub(crate) unfinished: &'a Unfinished<'a>,
    /// Without this group.
    pub(crate) so_far: FioResult,
}

impl Running<'_> {
    pub(crate) fn during<T>(&self, run: impl FnOnce() -> T) -> T {
        let (ended, ends) = (Mutex::new(false), Condvar::new());
        let began = Instant::now();
        let interval = Duration::from_nanos(self.status.interval_ns.max(1));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut next = interval;
                let mut over = lock(&ended);
                while !*over {
                    let left = next.saturating_sub(began.elapsed());
                    if left.is_zero() {
                        drop(over);
                        self.report(began.elapsed());
                        // A late report does not cause others in a row.
                        while next <= began.elapsed() {
                            next += interval;
                        }
                        over = lock(&ended);
                    } else {
                        over = ends
                            .wait_timeout(over, left)
                            .map_or_else(|broken| broken.into_inner().0, |woken| woken.0);
                    }
                }
            });
            // Also ends the reports if the run panics.
            let _end = EndsOnDrop(&ended, &ends);
            run()
        })
    }

    fn report(&self, elapsed: Duration) {
        let elapsed_ns = elapsed.as_nanos() as u64;
        let group = self.unfinished.with(self.board.answers(), elapsed_ns);
        let mut result = self.so_far.clone();
        result.elapsed_ns += elapsed_ns;
        result.ended_unix_ms = self.unfinished.system_stats.unix_ms();
        result.groups.push(group);
        (self.status.report)(&result);
    }
}

struct EndsOnDrop<'a>(&'a Mutex<bool>, &'a Condvar);

impl Drop for EndsOnDrop<'_> {
    fn drop(&mut self) {
        *lock(self.0) = true;
        self.1.notify_all();
    }
}
