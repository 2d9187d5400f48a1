//! Jobs from sections: what runs, in which order, and what runs together.

use super::checks::check;
use super::error::FioError;
use super::iolog::{Action, Entry, Trace};
use super::jobfile::{At, Section, Setting, cut};
use super::options::{Distribution, Options};
use super::value::Amount;
use machine::Op;
use machine::units::show_size;
use workload::{SizeMix, Sizes};

/// A job, understood.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub at: At,
    /// Its options, the global ones taken in.
    pub options: Options,
    /// Its own options as written, for the report.
    pub given: Vec<(String, String)>,
    /// fio's number of its reporting group.
    pub group_id: u32,
}

impl Job {
    /// The job in a message.
    pub(crate) fn shown(&self) -> String {
        format!("{}: job '{}'", self.at, cut(&self.name))
    }

    /// An error of this job.
    pub(crate) fn wrong(&self, why: impl std::fmt::Display) -> FioError {
        FioError::Usage(format!("{}: {why}", self.shown()))
    }

    /// Requests that each stream keeps outstanding: 1 where the engine's calls block.
    pub fn effective_depth(&self) -> u32 {
        if self.options.offload { self.options.depth } else { self.options.depth.min(self.options.engine.max_depth()) }
    }

    /// Whether something else than its sequence says what comes next.
    pub(crate) fn is_guided(&self) -> bool {
        self.options.trace.is_some() || self.options.checks_mix
    }

    /// Whether it trims.
    pub(crate) fn trims(&self) -> bool {
        self.options.trims || self.options.replay.trims()
    }

    /// What share of the requests read, as the rates of both directions have it: of so many so many.
    pub(crate) fn rated_mix(&self) -> Option<(u64, u64)> {
        match self.rates() {
            // In millionths of a request: what the sizes do not divide is far below one of a run.
            [Some(reads), Some(writes)] => Some(((reads * 1e6) as u64, ((reads + writes) * 1e6) as u64)),
            _ => None,
        }
    }

    /// Whether how far it wrote is kept.
    pub(crate) fn saves_state(&self) -> bool {
        let options = &self.options;
        options.state_save
            && !self.is_threaded()
            && options.verify.is_some()
            && options.writes
            && options.trace.is_none()
    }

    /// Whether the time of submission is measured: where requests are submitted by a call that does not wait for them.
    pub(crate) fn times_submission(&self) -> bool {
        self.options.times_submission && self.options.engine.is_async() && self.options.engine.does_io()
    }

    /// Whether threads make its calls, one request each.
    pub fn is_threaded(&self) -> bool {
        let options = &self.options;
        options.engine.has_workers() || (options.offload && options.depth > 1 && options.engine.max_depth() == 1)
    }

    /// The sizes of the operations that the job makes.
    fn used(&self) -> impl Iterator<Item = &SizeMix> {
        let used = [self.options.reads, self.options.writes];
        self.options.blocks.iter().zip(used).filter(|(_, used)| *used).map(|(mix, _)| mix)
    }

    /// Size of its requests, the greatest where they differ.
    pub fn request_bytes(&self) -> u64 {
        self.used().filter_map(SizeMix::bounds).map(|(_, most)| u64::from(most)).max().unwrap_or(0)
    }

    /// Size of the smallest of its requests.
    pub fn least_request_bytes(&self) -> u64 {
        let least = self.used().filter_map(SizeMix::bounds).map(|(least, _)| u64::from(least)).min();
        least.unwrap_or(0).max(1)
    }

    /// How its sizes differ; `None`: they do not.
    pub fn sizes(&self) -> Option<Sizes> {
        let one = |mix: &SizeMix| mix.bounds().is_some_and(|(least, _)| u64::from(least) == self.request_bytes());
        let [read, write] = &self.options.blocks;
        (!self.used().all(one)).then(|| Sizes { read: read.clone(), write: write.clone() })
    }

    /// Its sizes in words.
    pub(crate) fn sizes_shown(&self) -> String {
        let least = self.least_request_bytes();
        if least == self.request_bytes() {
            show_size(least)
        } else {
            format!("{} to {}", show_size(least), show_size(self.request_bytes()))
        }
    }

    /// Whether its places are random, and its requests of several sizes or longer than the places lie apart.
    fn may_overlap(&self) -> bool {
        let options = &self.options;
        let closer = options.align_bytes.is_some_and(|align| align < self.request_bytes());
        options.random && options.trace.is_none() && (self.sizes().is_some() || closer)
    }

    /// Whether such places are drawn evenly from its files.
    pub(crate) fn spreads(&self) -> bool {
        let options = &self.options;
        self.may_overlap() && options.distribution == Distribution::Uniform && options.random_percent == [100; 2]
    }

    /// Whether these have no byte twice in a pass.
    pub(crate) fn covers(&self) -> bool {
        self.spreads() && !self.options.no_random_map
    }

    /// Whether one of its requests may go to a part of the place of another.
    pub(crate) fn overlaps(&self) -> bool {
        self.may_overlap() && !self.covers()
    }

    /// Whether the places that it wrote are to be kept, because its sequence does not tell which of them are to be read back.
    pub(crate) fn keeps_pieces(&self) -> bool {
        self.may_overlap()
    }

    /// Files that a clone uses.
    pub fn file_count(&self) -> u32 {
        if self.options.filenames.is_empty() { self.options.files } else { self.options.filenames.len() as u32 }
    }

    /// Requests per second of reads and of writes, where limited.
    pub(super) fn rates(&self) -> [Option<f64>; 2] {
        let of = |side: usize| {
            let by_bytes = self.options.rate_bytes[side].map(|rate| rate as f64 / self.options.blocks[side].mean());
            self.options.rate_iops[side].map(|rate| rate as f64).or(by_bytes)
        };
        [of(0).filter(|_| self.options.reads), of(1).filter(|_| self.options.writes)]
    }

    /// Requests per second of each clone, where limited: reads and writes together.
    pub fn rate_iops(&self) -> Option<f64> {
        match self.rates() {
            [Some(reads), Some(writes)] => Some(reads + writes),
            [one, other] => one.or(other),
        }
    }

    /// Percent of the requests that read: where both directions have a rate, as the rates have it.
    pub fn read_percent(&self) -> u8 {
        match self.rates() {
            [Some(reads), Some(writes)] => (reads / (reads + writes) * 100.0).round() as u8,
            _ => self.options.read_percent(),
        }
    }
}

/// Everything that is to be done.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Jobs that run together, one set after the other. None is empty.
    pub groups: Vec<Vec<Job>>,
    /// The global options as written.
    pub global: Vec<(String, String)>,
    /// Where fio would silently do something else than was asked.
    pub warnings: Vec<String>,
}

/// Takes settings into options; `kb_base` first, because the others' units depend on it.
fn apply(options: &mut Options, settings: &[Setting]) -> Result<(), FioError> {
    let (bases, others): (Vec<&Setting>, Vec<&Setting>) =
        settings.iter().partition(|setting| setting.name == "kb_base");
    for setting in bases.into_iter().chain(others) {
        options.set(&setting.name, setting.value.as_deref()).map_err(|reason| {
            let value = setting.value.as_ref().map_or(String::new(), |value| format!("={}", cut(value)));
            FioError::Usage(format!("{}: option {}{value}: {reason}", setting.at, cut(&setting.name)))
        })?;
    }
    Ok(())
}

/// The options of sections without a job.
pub(crate) fn globals(sections: &[Section]) -> Result<Options, FioError> {
    let mut options = Options::default();
    sections.iter().try_for_each(|section| apply(&mut options, &section.settings))?;
    Ok(options)
}

/// Bytes of a file that goes on until no space is left.
const MORE_THAN_FITS: u64 = 1 << 50;

/// What follows from the options of a job together.
fn settle(options: &mut Options) {
    if options.blocks_by_order {
        let of_order = options.blocks[usize::from(options.random)].clone();
        (options.blocks, options.trim_blocks) = ([of_order.clone(), of_order.clone()], of_order);
    }
    if options.trims {
        // As in fio: what follows a trim is as long as that.
        options.blocks[1] = options.trim_blocks.clone();
    }
    let used = [options.reads, options.writes];
    if options.random && (0..2).all(|side| !used[side] || options.random_percent[side] == 0) {
        options.random = false;
    }
    options.no_random_map &= !options.every_place;
    // As in fio: places of their own take the map of those that were gone to away.
    let least = options.blocks[usize::from(!options.reads)].bounds().map(|(least, _)| u64::from(least));
    options.no_random_map |= options.random && options.align_bytes.is_some() && options.align_bytes != least;
    options.tolerated = options.tolerated.settled();
    options.direct |= options.atomic;
    if options.fills && options.size.is_none() && options.file_bytes.is_none() {
        options.size = Some(Amount::Bytes(MORE_THAN_FITS));
    }
    // Without a time it ends with its size.
    options.time_based &= options.runtime_ns > 0;
    if options.verify_only && options.verify.is_some() && options.writes {
        // What is checked is what a reading job checks, or of a mix what was written.
        options.checks_mix = options.reads;
        (options.reads, options.writes) = (true, false);
    }
    options.trace = options.replay.settled();
    if let Some(trace) = options.trace.clone() {
        settle_trace(options, &trace);
    }
}

/// A trace says what is done, on which files and how large they must be.
fn settle_trace(options: &mut Options, trace: &Trace) {
    let op_of = |entry: &Entry| match entry.action {
        Action::Request(op) => Some(op),
        _ => None,
    };
    let does = |op: Op| trace.entries.iter().any(|entry| op_of(entry) == Some(op));
    let requests = || trace.entries.iter().filter(|entry| op_of(entry).is_some());
    // What trims opens its file to write.
    (options.reads, options.writes, options.random) = (does(Op::Read), does(Op::Write) || options.replay.trims(), true);
    // A trim moves no data, and needs no room for any.
    let largest = requests().map(|entry| entry.len).max().unwrap_or(4096);
    let end = trace.entries.iter().map(|entry| entry.offset + u64::from(entry.len)).max().unwrap_or(1);
    options.blocks = [SizeMix::one(largest), SizeMix::one(largest)];
    // Each of several files that take turns has as much.
    options.size = Some(Amount::Bytes(end.max(u64::from(largest)) * trace.files.len() as u64));
    (options.offset, options.offset_increment) = (Amount::Bytes(0), Amount::Bytes(0));
    if !options.engine.does_io() {
        // It opens no file; those of the trace are left alone.
        (options.filenames, options.files) = (Vec::new(), trace.files.len() as u32);
    } else {
        (options.filenames, options.directories) = (trace.files.clone(), Vec::new());
        options.files = 1;
    }
}

/// Settings as written, the last of a name in the place of the first.
fn record(given: &mut Vec<(String, String)>, settings: &[Setting]) {
    for setting in settings {
        // fio shows an option without a value as one that is on.
        let value = setting.value.clone().unwrap_or_else(|| "1".into());
        match given.iter_mut().find(|(name, _)| *name == setting.name) {
            Some((_, old)) => *old = value,
            None => given.push((setting.name.clone(), value)),
        }
    }
}

impl Plan {
    /// Understands sections; where `only` is not empty, the jobs of these names alone.
    ///
    /// # Errors
    /// An option that is not served or makes no sense, named with its place; no job at all.
    pub fn new(sections: &[Section], only: &[String]) -> Result<Plan, FioError> {
        let mut plan = Plan { groups: Vec::new(), global: Vec::new(), warnings: Vec::new() };
        let mut defaults = Options::default();
        let mut group_id = 0;
        // Sets of jobs up to the one that the last stonewall began.
        let mut begun_together = 0;
        for section in sections {
            if section.is_global() {
                apply(&mut defaults, &section.settings)?;
                record(&mut plan.global, &section.settings);
                continue;
            }
            let mut options = defaults.clone();
            apply(&mut options, &section.settings)?;
            settle(&mut options);
            if !only.is_empty() && !only.contains(&section.name) {
                continue;
            }
            let mut given = Vec::new();
            record(&mut given, &section.settings);
            let first = plan.groups.is_empty();
            if !first && (options.stonewall || options.new_group) {
                group_id += 1;
            }
            let job = Job { name: section.name.clone(), at: section.at.clone(), options, given, group_id };
            plan.check_wait(&job)?;
            if first || job.options.stonewall {
                plan.groups.push(Vec::new());
                begun_together = plan.groups.len();
            } else if plan.begins_a_group(&job, begun_together)? {
                plan.groups.push(Vec::new());
            }
            check(&job, &mut plan.warnings)?;
            plan.groups.last_mut().expect("a group was just made").push(job);
        }
        if plan.groups.is_empty() {
            return Err(FioError::Usage("no job is defined; name a job file, or write --name=JOB --size=1g".into()));
        }
        Ok(plan)
    }

    /// Refuses a job that waits for one that is not before it.
    fn check_wait(&self, job: &Job) -> Result<(), FioError> {
        let missing = job.options.wait_for.as_ref().filter(|waited| !self.jobs().any(|one| one.name == **waited));
        match missing {
            Some(waited) if *waited == job.name => {
                Err(job.wrong(format!("wait_for={}: a job cannot wait for itself; name a job before it", cut(waited))))
            }
            Some(waited) => Err(job.wrong(format!(
                "wait_for={}: no job before it has this name; name one of those before it",
                cut(waited)
            ))),
            None => Ok(()),
        }
    }

    /// Whether a job that waits for another begins a set of jobs of its own; `begun_together` sets were there when the last stonewall's jobs began.
    /// Sets run one after the other, so a job waits for all of the set before it: that has to be the one that it waits for.
    fn begins_a_group(&self, job: &Job, begun_together: usize) -> Result<bool, FioError> {
        let Some(waited) = &job.options.wait_for else {
            let why =
                "it would run beside jobs that wait for others (wait_for); give it a stonewall, or put it before them";
            return if self.groups.len() > begun_together { Err(job.wrong(why)) } else { Ok(false) };
        };
        let named = |jobs: &Vec<Job>| jobs.iter().any(|one| one.name == *waited);
        let last = self.groups.len() - 1;
        if self.groups.iter().rposition(named).is_some_and(|group| group < last) {
            // It has ended when this set begins.
            return Ok(false);
        }
        match self.groups[last].iter().find(|one| one.name != *waited) {
            Some(other) => Err(job.wrong(format!(
                "wait_for={}: it would begin while job '{}' still runs, which halfpower does not do; order them with stonewall",
                cut(waited),
                cut(&other.name)
            ))),
            None => Ok(true),
        }
    }

    /// All jobs in order.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.groups.iter().flatten()
    }

    /// Whether any job writes.
    pub fn writes(&self) -> bool {
        self.jobs().any(|job| job.options.writes)
    }
}

/// The job of these settings.
#[cfg(test)]
pub(crate) fn job(settings: &str) -> Job {
    let settings = settings.split_whitespace().map(|setting| {
        let (name, value) = setting.split_once('=').unwrap();
        Setting { name: name.into(), value: Some(value.into()), at: At::CommandLine }
    });
    let section = Section { name: "j".into(), settings: settings.collect(), at: At::CommandLine };
    Plan::new(&[section], &[]).unwrap().groups.remove(0).remove(0)
}
