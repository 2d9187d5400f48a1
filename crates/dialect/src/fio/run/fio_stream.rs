//! One stream of a job, with its features.

mod source;

use super::answers::Answers;
use super::contested::Contest;
use super::core::{Core, Submissions, Trims};
use super::filter::Filter;
use super::finished::Finished;
use super::flow::Flow;
use super::group::streams_of;
use super::guide::Guide;
use super::limits::Limits;
use super::outcome::recorded;
use super::pacing::{Batching, Exit, Pauses, Watched};
use super::priorities::Priorities;
use super::rates::Rates;
use super::result::CloneStats;
use super::steady::Watch;
use super::stream_stats::StreamStats;
use super::syncs::{Passes, Syncs};
use super::trace_log::TraceLog;
use super::verifying::{Verification, Verifying};
use super::whole_files::WholeFiles;
use crate::fio::options::tolerated::Tolerated;
use crate::fio::plan::jobs::Job;
use crate::fio::plan::turns::FileTurns;
use machine::{Nanos, RequestSource};
use measure::Stream;
use std::sync::Arc;
use workload::rng;

pub(crate) struct FioStream {
    core: Core,
    filters: Vec<Box<dyn Filter>>,
    /// Filters act on requests, not only between passes.
    filters_each: bool,
    delay: Nanos,
    starts: Nanos,
    begun: bool,
    /// The clock ends the stream; it has then run until that time even if no request was due.
    is_clocked: bool,
}

#[derive(Default)]
pub(crate) struct StreamState {
    pub(crate) watch: Option<Arc<Watch>>,
    pub(crate) contest: Option<Contest>,
    pub(crate) verify: Option<Verification>,
    pub(crate) exit: Option<Exit>,
    pub(crate) flow: Option<Flow>,
    pub(crate) passes: Passes,
    pub(crate) guide: Option<Guide>,
    pub(crate) answers: Option<Answers>,
    pub(crate) whole_files: Option<WholeFiles>,
    /// [`ClonePlan::has_rest`](crate::fio::plan::arrange::ClonePlan::has_rest).
    pub(crate) has_rest: bool,
}

impl FioStream {
    pub(crate) fn new(
        mut stream: Stream,
        job: &Job,
        turns: FileTurns,
        chance: u64,
        state: StreamState,
    ) -> FioStream {
        let options = &job.options;
        if options.poisson {
            stream.arrive_at_random(rng::derive(chance, PURPOSE_ARRIVALS, 0));
        }
        if job.sizes().is_some() || job.spreads() {
            // fio cuts a request at the end of its file or of the free space, but not when its byte
            // budget runs out.
            stream.end_with_a_whole_request();
        }
        let delay = delay_of(options.start_delay_ns, chance);
        let depth = stream.depth();
        let mut core = Core::new(stream, StreamStats::new(job), turns);
        core.ramp = options.ramp_ns;
        // The wait comes before reading back.
        core.has_rest = state.has_rest && options.verify.is_none();
        core.submissions = job
            .times_submission()
            .then(|| Submissions { open: Vec::with_capacity(depth as usize), reported: false });
        core.trims = job.trims().then_some(Trims {
            then_write: options.then_writes,
            next_is_one: options.trims,
            under_way: None,
            trimmed: None,
        });
        core.fills = options.fills;
        core.pattern = options.buffer_pattern.as_slice().into();
        // Data read back later must have been written.
        core.tolerated = Tolerated {
            writes: options.tolerated.writes && options.verify.is_none(),
            ..options.tolerated
        };
        core.guide = state.guide;
        core.rates = Rates::of(job, chance, streams_of(job));
        core.is_led = core.guide.is_some() || core.rates.is_some();
        let flow = state.flow.map(|mut flow| {
            if delay == 0 {
                flow.expect();
            }
            flow
        });
        let verifying = Verifying::of(state.verify, state.contest, &mut core);
        if state.passes.bytes > 0 {
            core.pass_bytes = state.passes.bytes;
        }
        let syncs = Syncs::of(job, depth, state.passes);
        let between_passes = syncs.as_ref().is_some_and(Syncs::is_between_passes);
        let filters: [Option<Box<dyn Filter>>; 12] = [
            state.answers.map(|answers| Box::new(answers) as _),
            state.watch.map(|watch| Box::new(Watched::new(watch, options.steady.ramp_ns)) as _),
            verifying.map(|one| Box::new(one) as _),
            state.exit.map(|exit| Box::new(exit) as _),
            (options.think_ns > 0).then(|| Box::new(Pauses::of(options)) as _),
            flow.map(|flow| Box::new(flow) as _),
            Limits::of(job, depth).map(|limits| Box::new(limits) as _),
            syncs.map(|syncs| Box::new(syncs) as _),
            Batching::of(job, depth).map(|batches| Box::new(batches) as _),
            Priorities::of(options, chance, &mut core).map(|priorities| Box::new(priorities) as _),
            TraceLog::of(options).map(|trace| Box::new(trace) as _),
            state.whole_files.map(|files| Box::new(files) as _),
        ];
        let filters: Vec<_> = filters.into_iter().flatten().collect();
        // Reading back is not part of the writes' time.
        let is_clocked = options.runtime_ns > 0 && options.verify.is_none();
        let filters_each = filters.len() > usize::from(between_passes);
        FioStream { core, filters, filters_each, delay, starts: 0, begun: false, is_clocked }
    }

    pub(crate) fn recorded(&self) -> CloneStats {
        recorded(&self.core.stream, &self.core.record)
    }

    pub(crate) fn finish(self) -> Finished {
        let Core { stream, record, ended, no_space, .. } = self.core;
        let complete = ended || record.failures.count > 0;
        let mut finished = Finished {
            stream,
            record,
            complete,
            no_space,
            kept: Vec::new(),
            contest: None,
            failed: None,
        };
        self.filters.into_iter().for_each(|filter| filter.finish(&mut finished));
        finished
    }

    #[cold]
    fn start(&mut self, now: Nanos) {
        self.begun = true;
        self.core.start(now);
        self.filters.iter_mut().for_each(|filter| filter.begin(&self.core));
    }

    #[cold]
    fn leave(&mut self, done: bool) {
        self.core.leaves = false;
        self.core.has_rest &= done;
        self.filters.iter_mut().for_each(|filter| filter.left(done));
    }

    #[inline(always)]
    fn announce(&mut self) {
        if std::mem::take(&mut self.core.fails) {
            self.filters.iter_mut().for_each(|filter| filter.fails());
        }
    }
}

const PURPOSE_ARRIVALS: u64 = 0xa771;

fn delay_of([min, max]: [Nanos; 2], chance: u64) -> Nanos {
    min + rng::below(rng::mix(chance), max - min + 1)
}

#[cfg(test)]
mod tests;
