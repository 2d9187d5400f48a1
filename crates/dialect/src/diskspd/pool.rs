//! Threads that share all targets (`-F`, `-O`, `<ThreadCount>`, `<RequestCount>`, `<Weight>`).

use super::profile::{Caching, Source, Target, TimeSpan, engine};
use crate::concurrent;
use crate::parse::refuse;
use machine::{Buffers, Engine, Result};
use workload::{MAX_DEPTH, Workload};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadPool {
    /// `-F`
    pub threads: u32,
    /// `-O`: per thread over all targets; `None`: each target has its own.
    pub outstanding: Option<u32>,
}

impl TimeSpan {
    /// A single target gets them as its own, if all threads use it.
    pub(super) fn share_threads(&mut self, threads: u32, outstanding: Option<u32>) {
        for target in &mut self.targets {
            target.threads = threads;
            target.outstanding = outstanding.unwrap_or(target.outstanding);
        }
        let single = matches!(self.targets.as_slice(), [only] if only.thread_weights.is_empty());
        self.pool = (!single).then_some(ThreadPool { threads, outstanding });
    }

    pub(super) fn check_pool(&self) -> Result<()> {
        let weighs = self.pool.is_some_and(|pool| pool.outstanding.is_some());
        for target in &self.targets {
            if !(weighs || target.thread_weights.is_empty()) {
                return refuse(
                    "<ThreadTargets>",
                    "they are for the threads of a pool",
                    "give the time span <ThreadCount> and <RequestCount>",
                );
            }
            if target.weight == 0 {
                return refuse(
                    "<Weight>0",
                    "each target has some of the requests",
                    "give a larger weight",
                );
            }
        }
        let Some(pool) = &self.pool else { return Ok(()) };
        pool.check(&self.targets)
    }
}

impl ThreadPool {
    fn check(&self, targets: &[Target]) -> Result<()> {
        if self.threads == 0
            || self.threads > 1024
            || self.outstanding.is_some_and(|count| count == 0 || count > MAX_DEPTH)
        {
            return refuse(
                "-F or -O",
                "a pool has 1 to 1024 threads, each with 1 to 65536 requests outstanding",
                "choose values between them",
            );
        }
        let Some(first) = targets.first() else { return Ok(()) };
        let reached = |target: &Target| {
            (target.caching, target.write_through, target.hint, target.large_pages)
        };
        if let Some(other) = targets.iter().find(|target| reached(target) != reached(first)) {
            return refuse(
                other.path.display().to_string(),
                "the threads of a pool reach all targets in the same way, and this one differs in its caching or hint",
                "let all have the same, or give each target threads of its own (-t, <ThreadsPerFile>)",
            );
        }
        let zeros = |target: &Target| target.source == Source::Zero;
        let mut writers = targets.iter().filter(|target| target.write_percent > 0);
        if let Some(writer) = writers.next()
            && let Some(other) = writers.find(|other| zeros(other) != zeros(writer))
        {
            return refuse(
                other.path.display().to_string(),
                "some writes of the pool carry zeros and others do not",
                "let all carry the same, or give each target threads of its own (-t, <ThreadsPerFile>)",
            );
        }
        if self.outstanding.is_some() {
            let limited = |target: &Target| {
                target.throughput_bytes_per_ms.is_some()
                    || target.throughput_iops.is_some()
                    || target.burst.is_some()
            };
            if targets.iter().any(limited) {
                return refuse(
                    "-O and -g, -i or -j",
                    "which target a request goes to hangs on no clock",
                    "leave out one of the two, or use -o for -O",
                );
            }
        }
        self.check_thread_weights(targets)
    }

    fn check_thread_weights(&self, targets: &[Target]) -> Result<()> {
        for (thread, _) in targets.iter().flat_map(|target| &target.thread_weights) {
            if *thread >= self.threads {
                let why = format!("the pool has {}, counted from 0", self.threads);
                return refuse(format!("<Thread>{thread}"), why, "name one of them");
            }
        }
        match self
            .weights(targets)
            .iter()
            .position(|weights| weights.iter().all(|weight| *weight == 0))
        {
            Some(idle) => refuse(
                format!("thread {idle}"),
                "no target is for it",
                "lower <ThreadCount>, or name it in <ThreadTargets>",
            ),
            None => Ok(()),
        }
    }

    fn weights(&self, targets: &[Target]) -> Vec<Vec<u32>> {
        let of = |thread: u32, target: &Target| {
            let own = target.thread_weights.iter().find(|(number, _)| *number == thread);
            match own {
                Some((_, weight)) => weight.filter(|weight| *weight > 0).unwrap_or(target.weight),
                None if target.thread_weights.is_empty() => target.weight,
                None => 0,
            }
        };
        (0..self.threads)
            .map(|thread| targets.iter().map(|target| of(thread, target)).collect())
            .collect()
    }

    /// No pool is needed if the engine has no depth and the targets do not share requests.
    fn is_run(&self, targets: &[Target], engines: &[Engine]) -> bool {
        self.outstanding.is_some() || !self.engine(targets, engines).has_workers()
    }

    fn engine(&self, targets: &[Target], engines: &[Engine]) -> Engine {
        let mapped = targets.iter().any(|target| target.caching == Caching::Mapped);
        let depth =
            self.outstanding.unwrap_or(targets.iter().map(|target| target.outstanding).sum());
        engine(mapped, depth, engines)
    }

    pub(super) fn says(&self, element: &str) -> bool {
        element == "ThreadsPerFile" || (element == "RequestCount" && self.outstanding.is_some())
    }

    pub(super) fn plan(&self, span: &TimeSpan, engines: &[Engine]) -> Option<concurrent::Pool> {
        let weights = self.weights(&span.targets);
        let each = self.singles(&span.targets, engines) as usize;
        self.is_run(&span.targets, engines).then(|| concurrent::Pool {
            outstanding: if each > 1 { Some(1) } else { self.outstanding },
            weights: weights
                .into_iter()
                .flat_map(|weights| std::iter::repeat_n(weights, each))
                .collect(),
            seed: u64::from(span.seed) + 1,
        })
    }

    /// The single-request threads per thread, several if no engine has depth.
    fn singles(&self, targets: &[Target], engines: &[Engine]) -> u32 {
        match (self.engine(targets, engines), self.outstanding) {
            (engine, Some(outstanding)) => engine.workers(outstanding),
            _ => 1,
        }
    }

    pub(super) fn workload(
        &self,
        workload: Workload,
        targets: &[Target],
        engines: &[Engine],
    ) -> Workload {
        if !self.is_run(targets, engines) {
            return workload;
        }
        let singles = self.singles(targets, engines);
        if singles > 1 {
            return Workload {
                engine: Engine::Sync,
                depth: 1,
                threads: workload.threads * singles,
                ..workload
            };
        }
        Workload { engine: self.engine(targets, engines), ..workload }
    }

    pub(super) fn buffers(&self, each: &[Buffers]) -> Vec<Buffers> {
        let depth = self.outstanding.unwrap_or(each.iter().map(|one| one.depth).sum());
        let max = each.iter().map(|one| one.request_bytes).max().unwrap_or(0);
        let writes = each.iter().any(|one| one.writes);
        vec![Buffers { streams: self.threads, depth, request_bytes: max, writes }]
    }
}
