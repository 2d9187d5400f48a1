//! Turns sections into sets of jobs.

use super::checks::check;
use crate::fio::options::error::FioError;
use crate::fio::options::job_options::Options;
use crate::fio::options::jobfile::{At, Section, Setting, cut};
use crate::fio::options::kinds::{Checked, Distribution, FileService};
use crate::fio::options::table::canonical;
use crate::fio::options::trace::{Action, Entry, Trace};
use crate::fio::options::value::Amount;
use machine::Op;
use machine::units::show_size;
use workload::{SizeMix, Sizes};

#[derive(Debug, Clone)]
pub struct Job {
    pub name: String,
    pub at: At,
    /// With global options.
    pub options: Options,
    /// Own options as written, for reports.
    pub given: Vec<(String, String)>,
    /// The reporting group.
    pub group_id: u32,
}

impl Job {
    pub fn shown(&self) -> String {
        format!("{}: job '{}'", self.at, cut(&self.name))
    }

    pub fn wrong(&self, why: impl std::fmt::Display) -> FioError {
        FioError::Usage(format!("{}: {why}", self.shown()))
    }

    /// Of each stream; 1 if the engine blocks.
    pub fn effective_depth(&self) -> u32 {
        if self.options.file_operation.is_some() {
            1
        } else if self.options.offload {
            self.options.depth
        } else {
            self.options.depth.min(self.options.engine.max_depth())
        }
    }

    pub(crate) fn is_guided(&self) -> bool {
        self.options.trace.is_some() || self.options.checked.is_some()
    }

    /// Mapped memory is the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.options.direct && !self.options.engine.is_mapped()
    }

    pub(crate) fn trims(&self) -> bool {
        self.options.trims || self.options.replay.trims()
    }

    pub(crate) fn saves_state(&self) -> bool {
        let options = &self.options;
        options.state_save
            && !self.is_threaded()
            && options.verify.is_some()
            && options.writes
            && options.trace.is_none()
    }

    pub(crate) fn times_submission(&self) -> bool {
        self.options.times_submission
            && self.options.engine.is_async()
            && self.options.engine.does_io()
    }

    /// Threads make the calls, one request each.
    pub fn is_threaded(&self) -> bool {
        let options = &self.options;
        options.engine.has_workers()
            || (options.offload && options.depth > 1 && options.engine.max_depth() == 1)
    }

    fn used(&self) -> impl Iterator<Item = &SizeMix> {
        let used = [self.options.reads, self.options.writes];
        self.options.blocks.iter().zip(used).filter(|(_, used)| *used).map(|(mix, _)| mix)
    }

    /// The maximum.
    pub fn request_bytes(&self) -> u64 {
        self.used().filter_map(SizeMix::bounds).map(|(_, max)| u64::from(max)).max().unwrap_or(0)
    }

    pub fn min_request_bytes(&self) -> u64 {
        let min = self.used().filter_map(SizeMix::bounds).map(|(min, _)| u64::from(min)).min();
        min.unwrap_or(0).max(1)
    }

    /// Includes directions that the job does not use.
    pub(crate) fn min_block_bytes(&self) -> u64 {
        let options = &self.options;
        let [reads, writes] = &options.blocks;
        let all = [reads, writes, &options.trim_blocks].into_iter().filter_map(SizeMix::bounds);
        all.map(|(min, _)| u64::from(min)).min().unwrap_or(0).max(1)
    }

    /// `None`: all are the same.
    pub fn sizes(&self) -> Option<Sizes> {
        let one = |mix: &SizeMix| {
            mix.bounds().is_some_and(|(min, _)| u64::from(min) == self.request_bytes())
        };
        let [read, write] = &self.options.blocks;
        (!self.used().all(one)).then(|| Sizes { read: read.clone(), write: write.clone() })
    }

    pub(crate) fn sizes_shown(&self) -> String {
        let min = self.min_request_bytes();
        if min == self.request_bytes() {
            show_size(min)
        } else {
            format!("{} to {}", show_size(min), show_size(self.request_bytes()))
        }
    }

    fn may_overlap(&self) -> bool {
        let options = &self.options;
        let closer = options.align_bytes.is_some_and(|align| align < self.request_bytes());
        // Files that are drawn differ in how much is left of each.
        let apart = self.file_count() > 1 && (options.service.is_skewed() || self.takes_turns());
        if self.has_own_places() {
            return false;
        }
        options.random && options.trace.is_none() && (self.sizes().is_some() || closer || apart)
    }

    /// Requests choose a file first, then a random place in it.
    pub(crate) fn takes_turns(&self) -> bool {
        let options = &self.options;
        self.file_count() > 1
            && options.random
            && (options.service != FileService::Sequential || options.sizes_range())
            && !matches!(
                options.distribution,
                Distribution::Zones { .. } | Distribution::ManyZones(_)
            )
            && options.random_percent == [100; 2]
    }

    /// Files used up before others are opened; `None`: all are open.
    pub(crate) fn open_files(&self) -> Option<u64> {
        let open = self.options.open_files;
        (1..u64::from(self.file_count())).contains(&open).then_some(open).filter(|&open| open > 1)
    }

    /// Offsets depend on earlier requests to the file.
    pub(crate) fn has_own_places(&self) -> bool {
        let options = &self.options;
        let some_follow = options.random && options.random_percent != [100; 2];
        let mix = options.reads && options.writes && !options.random;
        let several = self.file_count() > 1;
        ((several || options.hole_bytes > 0) && self.varies_in_order())
            || (options.strides.are_on() && (several || mix))
            || (several && some_follow)
            || (options.random && options.run > 1)
    }

    /// Sequential sizes vary, so that files end at different times.
    pub(crate) fn varies_in_order(&self) -> bool {
        let options = &self.options;
        let drawn = self.file_count() > 1 && options.service != FileService::RoundRobin;
        let differs = self.sizes().is_some() || (options.hole_bytes > 0 && drawn);
        differs && !options.random && options.back_bytes == 0 && options.reads != options.writes
    }

    /// Each file draws its own offsets.
    pub(crate) fn spreads(&self) -> bool {
        let options = &self.options;
        let even = options.distribution == Distribution::Uniform;
        self.may_overlap() && options.random_percent == [100; 2] && (even || self.takes_turns())
    }

    /// With a map, no byte is used twice in a pass. As in fio, other distributions have none.
    pub(crate) fn has_map(&self) -> bool {
        self.options.distribution == Distribution::Uniform && !self.options.no_random_map
    }

    /// A pass ends when the files are full, not after a number of bytes.
    pub(crate) fn passes_end(&self) -> bool {
        let options = &self.options;
        let mapped = if self.sizes().is_some() || self.overlaps() {
            self.covers()
        } else {
            self.has_map() && options.run == 1 && options.random_percent == [100; 2]
        };
        // The directions of a sequential mix begin again by themselves.
        let ends = if options.random { mapped } else { !self.mixes_in_order() };
        ends && !options.strides.are_on()
    }

    pub(crate) fn mixes_in_order(&self) -> bool {
        self.options.reads && self.options.writes && !self.options.random
    }

    /// Files that draw offsets use no byte twice in a pass.
    pub(crate) fn covers(&self) -> bool {
        self.spreads() && self.has_map()
    }

    pub(crate) fn overlaps(&self) -> bool {
        self.may_overlap() && !self.covers()
    }

    /// The sequence cannot reproduce the offsets.
    pub(crate) fn keeps_writes(&self) -> bool {
        self.may_overlap() || self.has_own_places() || self.has_schedules() || self.varies_by_pass()
    }

    /// Each pass splits a file into other requests.
    pub(crate) fn varies_by_pass(&self) -> bool {
        let options = &self.options;
        let one_pass = !options.time_based
            && options.loops == 1
            && options.io_size.is_none()
            && options.verify_backlog == 0
            && self.file_count() == 1;
        self.sizes().is_some() && !one_pass
    }

    pub fn file_count(&self) -> u32 {
        if self.options.filenames.is_empty() {
            self.options.files
        } else {
            self.options.filenames.len() as u32
        }
    }

    /// As in fio, `rate_iops` counts requests of the minimum size.
    pub(crate) fn rates_bytes(&self) -> [Option<f64>; 2] {
        let of = |side: usize| {
            let (min_bytes, _) = self.options.blocks[side].bounds()?;
            let by_requests =
                self.options.rate_iops[side].map(|rate| rate as f64 * f64::from(min_bytes));
            self.options.rate_bytes[side].map(|rate| rate as f64).or(by_requests)
        };
        [of(0), of(1)]
    }

    /// In requests per second.
    pub(crate) fn rates(&self) -> [Option<f64>; 2] {
        let bytes = self.rates_bytes();
        let of = |side: usize| Some(bytes[side]? / self.options.blocks[side].mean());
        [of(0).filter(|_| self.options.reads), of(1).filter(|_| self.options.writes)]
    }

    pub(crate) fn is_rated(&self) -> bool {
        self.rates().iter().any(Option::is_some)
    }

    /// The job whose writes `verify_only` reads back.
    pub(crate) fn checked_writer(&self) -> Option<Job> {
        let checked = self.options.checked?;
        let mut writer = self.clone();
        let options = &mut writer.options;
        (options.reads, options.writes) = (checked == Checked::Mix, true);
        (options.checked, options.verify, options.verify_only) = (None, None, false);
        Some(writer)
    }

    /// Requests are due by bytes or direction.
    pub(crate) fn has_schedules(&self) -> bool {
        let mix = self.options.reads && self.options.writes;
        (mix || self.sizes().is_some()) && self.is_rated() && !self.is_guided()
    }

    /// Of a clone; `None`: none, or only for one direction.
    pub fn rate_iops(&self) -> Option<f64> {
        match self.rates() {
            [Some(reads), Some(writes)] => Some(reads + writes),
            _ if self.has_schedules() => None,
            [one, other] => one.or(other),
        }
    }

    /// Rates of both directions override the option.
    pub fn read_percent(&self) -> u8 {
        match self.rates() {
            [Some(reads), Some(writes)] => (reads / (reads + writes) * 100.0).round() as u8,
            _ => self.options.read_percent(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Plan {
    /// Sets of concurrent jobs, in order; never empty.
    pub groups: Vec<Vec<Job>>,
    pub global: Vec<(String, String)>,
    /// Settings that fio would silently ignore or change.
    pub warnings: Vec<String>,
}

/// `kb_base` comes first: it defines the others' units.
fn apply(options: &mut Options, settings: &[Setting]) -> Result<(), FioError> {
    let (bases, others): (Vec<&Setting>, Vec<&Setting>) =
        settings.iter().partition(|setting| setting.name == "kb_base");
    for setting in bases.into_iter().chain(others) {
        options.set(&setting.name, setting.value.as_deref()).map_err(|reason| {
            let value =
                setting.value.as_ref().map_or(String::new(), |value| format!("={}", cut(value)));
            FioError::Usage(format!(
                "{}: option {}{value}: {reason}",
                setting.at,
                cut(&setting.name)
            ))
        })?;
    }
    Ok(())
}

pub(crate) fn globals(sections: &[Section]) -> Result<Options, FioError> {
    let mut options = Options::default();
    sections.iter().try_for_each(|section| apply(&mut options, &section.settings))?;
    Ok(options)
}

const MORE_THAN_FITS: u64 = 1 << 50;

fn settle(options: &mut Options) {
    for mix in options.blocks.iter_mut().chain([&mut options.trim_blocks]) {
        if let SizeMix::Range { min_bytes, max_bytes, .. } = *mix {
            *mix = SizeMix::range(min_bytes, max_bytes, options.unaligned);
        }
    }
    if options.blocks_by_order {
        let of_order = options.blocks[usize::from(options.random)].clone();
        (options.blocks, options.trim_blocks) = ([of_order.clone(), of_order.clone()], of_order);
    }
    if options.trims {
        // As in fio, the write after a trim is as long as the trim.
        options.blocks[1] = options.trim_blocks.clone();
    }
    let used = [options.reads, options.writes];
    let in_order = (0..2).all(|side| !used[side] || options.random_percent[side] == 0);
    // Requests that stay are not in order.
    options.random &= !in_order || options.run_stays();
    if options.reads && options.writes {
        // A mix of one direction is this direction. As in fio, it writes files that have data.
        options.overwrite |= options.mix_read == 0;
        (options.reads, options.writes) = (options.mix_read > 0, options.mix_read < 100);
    }
    if options.open_files == 1 {
        // As in fio, a file is closed when it has no block left.
        options.service = FileService::Sequential;
    } else if options.open_files > 1 {
        // As in fio, zones are for a single file.
        options.strides.strided = Some(false);
    }
    options.no_random_map &= !options.every_place;
    // As in fio, an alignment of its own disables the map of used blocks.
    let min = options.blocks[usize::from(!options.reads)].bounds().map(|(min, _)| u64::from(min));
    options.no_random_map |=
        options.random && options.align_bytes.is_some() && options.align_bytes != min;
    options.tolerated = options.tolerated.settled();
    options.direct |= options.atomic;
    if options.fills && options.size.is_none() && options.file_bytes.is_none() {
        options.size = Some(Amount::Bytes(MORE_THAN_FITS));
    }
    if options.think_ns > 0 {
        // fio computes in a part of its pauses; halfpower waits as long without a processor.
        options.think_ns = options.think_ns.max(options.think_spin_ns);
    }
    // Without a runtime, the size ends the job.
    options.time_based &= options.runtime_ns > 0;
    if options.verify_only && options.verify.is_some() && options.writes {
        let (min, max) = options.blocks[1].bounds().unwrap_or_default();
        options.checked = match options.reads {
            true => Some(Checked::Mix),
            false if min < max || options.align_bytes.is_some() => Some(Checked::Writes),
            // A reading job verifies the same.
            false => None,
        };
        if !options.reads {
            options.blocks[0] = options.blocks[1].clone();
            options.random_percent[0] = options.random_percent[1];
        }
        (options.reads, options.writes) = (true, false);
    }
    options.trace = options.replay.settled();
    if let Some(trace) = options.trace.clone() {
        settle_trace(options, &trace);
    }
}

fn settle_trace(options: &mut Options, trace: &Trace) {
    let op_of = |entry: &Entry| match entry.action {
        Action::Request(op) => Some(op),
        _ => None,
    };
    let does = |op: Op| trace.entries.iter().any(|entry| op_of(entry) == Some(op));
    let requests = || trace.entries.iter().filter(|entry| op_of(entry).is_some());
    // Trims need a file opened for writing.
    (options.reads, options.writes, options.random) =
        (does(Op::Read), does(Op::Write) || options.replay.trims(), true);
    // A trim transfers no data, so it needs no buffer.
    let largest = requests().map(|entry| entry.len).max().unwrap_or(4096);
    let end =
        trace.entries.iter().map(|entry| entry.offset + u64::from(entry.len)).max().unwrap_or(1);
    options.blocks = [SizeMix::one(largest), SizeMix::one(largest)];
    // Files that alternate all have the same size.
    options.size = Some(Amount::Bytes(end.max(u64::from(largest)) * trace.files.len() as u64));
    (options.offset, options.offset_increment) = (Amount::Bytes(0), Amount::Bytes(0));
    if !options.engine.does_io() {
        // The engine opens no file; the files in the trace stay untouched.
        (options.filenames, options.files) = (Vec::new(), trace.files.len() as u32);
    } else {
        (options.filenames, options.directories) = (trace.files.clone(), Vec::new());
        options.files = 1;
    }
}

/// Uses names as fio reports them; the last value counts.
fn record(given: &mut Vec<(String, String)>, settings: &[Setting]) {
    for setting in settings {
        // fio shows an option without a value as 1.
        let value = setting.value.clone().unwrap_or_else(|| "1".into());
        let name = canonical(&setting.name);
        match given.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => given.push((name.into(), value)),
        }
    }
}

impl Plan {
    /// A non-empty `only` selects jobs by name; no job is an error.
    pub fn new(sections: &[Section], only: &[String]) -> Result<Plan, FioError> {
        let mut plan = Plan { groups: Vec::new(), global: Vec::new(), warnings: Vec::new() };
        let mut defaults = Options::default();
        let mut group_id = 0;
        // Number of sets up to the one that the last stonewall started.
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
            let job = Job {
                name: section.name.clone(),
                at: section.at.clone(),
                options,
                given,
                group_id,
            };
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
            return Err(FioError::Usage(
                "no job is defined; name a job file, or write --name=JOB --size=1g".into(),
            ));
        }
        Ok(plan)
    }

    fn check_wait(&self, job: &Job) -> Result<(), FioError> {
        let missing = job
            .options
            .wait_for
            .as_ref()
            .filter(|waited| !self.jobs().any(|one| one.name == **waited));
        match missing {
            Some(waited) if *waited == job.name => Err(job.wrong(format!(
                "wait_for={}: a job cannot wait for itself; name a job before it",
                cut(waited)
            ))),
            Some(waited) => Err(job.wrong(format!(
                "wait_for={}: no job before it has this name; name one of those before it",
                cut(waited)
            ))),
            None => Ok(()),
        }
    }

    /// Sets run in order, so the previous one must contain only the job waited for.
    /// `begun_together` counts sets at the last stonewall.
    fn begins_a_group(&self, job: &Job, begun_together: usize) -> Result<bool, FioError> {
        let Some(waited) = &job.options.wait_for else {
            let why = "it would run at the same time as jobs that wait for others (wait_for); give it a stonewall, or put it before them";
            return if self.groups.len() > begun_together {
                Err(job.wrong(why))
            } else {
                Ok(false)
            };
        };
        let named = |jobs: &Vec<Job>| jobs.iter().any(|one| one.name == *waited);
        let last = self.groups.len() - 1;
        if self.groups.iter().rposition(named).is_some_and(|group| group < last) {
            // That job has ended when this set starts.
            return Ok(false);
        }
        match self.groups[last].iter().find(|one| one.name != *waited) {
            Some(other) => Err(job.wrong(format!(
                "wait_for={}: it would begin while job '{}' still runs, which is not supported; order them with stonewall",
                cut(waited),
                cut(&other.name)
            ))),
            None => Ok(true),
        }
    }

    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.groups.iter().flatten()
    }

    pub fn writes(&self) -> bool {
        self.jobs().any(|job| job.options.writes)
    }
}

#[cfg(test)]
pub(crate) fn job(settings: &str) -> Job {
    let settings = settings.split_whitespace().map(|setting| {
        let (name, value) = setting.split_once('=').unwrap();
        Setting { name: name.into(), value: Some(value.into()), at: At::CommandLine }
    });
    let section = Section { name: "j".into(), settings: settings.collect(), at: At::CommandLine };
    Plan::new(&[section], &[]).unwrap().groups.remove(0).remove(0)
}
