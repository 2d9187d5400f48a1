//! Jobs from sections: what runs, in which order, and what runs together.

use super::error::FioError;
use super::jobfile::{At, Section, Setting, cut};
use super::options::{Distribution, FioEngine, Options, SyncMode};
use machine::units::show_size;

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
        if matches!(self.options.engine, FioEngine::Blocking | FioEngine::Mmap) { 1 } else { self.options.depth }
    }

    /// Size of all its requests.
    pub fn request_bytes(&self) -> u64 {
        self.options.request_bytes[usize::from(!self.options.reads)]
    }

    /// Requests per second of each clone, where limited.
    pub fn rate_iops(&self) -> Option<f64> {
        let side = usize::from(!self.options.reads);
        let by_bytes = self.options.rate_bytes[side].map(|rate| rate as f64 / self.request_bytes() as f64);
        self.options.rate_iops[side].map(|rate| rate as f64).or(by_bytes)
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
    let (bases, others): (Vec<&Setting>, Vec<&Setting>) = settings.iter().partition(|setting| setting.name == "kb_base");
    for setting in bases.into_iter().chain(others) {
        options.set(&setting.name, setting.value.as_deref()).map_err(|reason| {
            let value = setting.value.as_ref().map_or(String::new(), |value| format!("={}", cut(value)));
            FioError::Usage(format!("{}: option {}{value}: {reason}", setting.at, cut(&setting.name)))
        })?;
    }
    Ok(())
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
        for section in sections {
            if section.is_global() {
                apply(&mut defaults, &section.settings)?;
                record(&mut plan.global, &section.settings);
                continue;
            }
            let mut options = defaults.clone();
            apply(&mut options, &section.settings)?;
            let name = options.name.clone().unwrap_or_else(|| section.name.clone());
            if !only.is_empty() && !only.contains(&section.name) && !only.contains(&name) {
                continue;
            }
            let mut given = Vec::new();
            record(&mut given, &section.settings);
            let first = plan.groups.is_empty();
            if !first && (options.stonewall || options.new_group) {
                group_id += 1;
            }
            if first || options.stonewall {
                plan.groups.push(Vec::new());
            }
            let job = Job { name, at: section.at.clone(), options, given, group_id };
            check(&job, &mut plan.warnings)?;
            plan.groups.last_mut().expect("a group was just made").push(job);
        }
        if plan.groups.is_empty() {
            return Err(FioError::Usage("no job is defined; name a job file, or write --name=JOB --size=1g".into()));
        }
        for group in &plan.groups {
            check_together(group)?;
        }
        Ok(plan)
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

/// Refuses options that make no sense together, and warns of what fio would not.
fn check(job: &Job, warnings: &mut Vec<String>) -> Result<(), FioError> {
    check_requests(job)?;
    check_engine(job, warnings)?;
    check_time(job)?;
    let options = &job.options;
    if !options.random && options.distribution != Distribution::Uniform {
        warnings.push(format!("{}: random_distribution has no effect on the sequential rw={}", job.shown(), options.mode));
    }
    if options.fsync > 0 && options.fdatasync > 0 {
        return Err(job.wrong("fsync and fdatasync are both asked for; leave one out"));
    }
    for part in options.filename_format.split('$').skip(1) {
        if !["jobname", "jobnum", "filenum"].iter().any(|word| part.starts_with(word)) {
            return Err(job.wrong(format!("filename_format: '${}' is unknown; use $jobname, $jobnum and $filenum", cut(part))));
        }
    }
    Ok(())
}

fn check_requests(job: &Job) -> Result<(), FioError> {
    let options = &job.options;
    let [read, write] = options.request_bytes;
    if options.reads && options.writes && read != write {
        let (read, write) = (show_size(read), show_size(write));
        return Err(
            job.wrong(format!("bs: reads of {read} and writes of {write} in one job are not served; make a reading and a writing job"))
        );
    }
    let bytes = job.request_bytes();
    if bytes == 0 || bytes > u64::from(workload::MAX_REQUEST_BYTES) {
        return Err(job.wrong(format!("bs: a request of {} is not from 1 B to 1 GiB", show_size(bytes))));
    }
    match options.align_bytes {
        Some(align) if align != bytes && options.random => Err(job.wrong(format!(
            "blockalign: requests of {} aligned to {} are not served; give it the value of bs, or leave it out",
            show_size(bytes),
            show_size(align)
        ))),
        _ => Ok(()),
    }
}

fn check_engine(job: &Job, warnings: &mut Vec<String>) -> Result<(), FioError> {
    let options = &job.options;
    let (engine, depth) = (&options.engine_name, options.depth);
    if depth > 1 && job.effective_depth() == 1 {
        warnings.push(format!(
            "{}: iodepth={depth} with ioengine={engine}: its calls block, so one request is outstanding at a time (fio says nothing); use libaio or io_uring, or numjobs={depth}",
            job.shown()
        ));
    }
    if options.engine == FioEngine::Libaio && !options.direct {
        warnings.push(format!(
            "{}: ioengine=libaio without direct=1: Linux serves such requests while they are submitted, one after the other (fio says nothing); use direct=1 or io_uring",
            job.shown()
        ));
    }
    if options.engine == FioEngine::PosixAio {
        warnings.push(format!(
            "{}: ioengine=posixaio: {depth} threads with a blocking call each; the C library, which fio uses, has one thread a file and so a depth of 1 at the device",
            job.shown()
        ));
        if options.fsync > 0 || options.fdatasync > 0 {
            return Err(job.wrong("fsync and fdatasync with ioengine=posixaio are not served; use psync, libaio or io_uring"));
        }
    }
    if options.engine == FioEngine::Mmap {
        if options.direct {
            return Err(job.wrong("direct=1 with ioengine=mmap: mapped memory is the page cache; use direct=0, or psync"));
        }
        if options.sync != SyncMode::None {
            return Err(job.wrong("sync with ioengine=mmap: stores to memory wait for nothing; use fsync=1, or psync"));
        }
    }
    Ok(())
}

fn check_time(job: &Job) -> Result<(), FioError> {
    let options = &job.options;
    if options.time_based && options.runtime_ns == 0 {
        return Err(job.wrong("time_based needs a runtime; write runtime=60"));
    }
    if options.reads && options.writes && (options.rate_bytes, options.rate_iops) != ([None; 2], [None; 2]) {
        return Err(job.wrong(format!("rate or rate_iops with rw={}: make a reading and a writing job, each with its rate", options.mode)));
    }
    let side = usize::from(!options.reads);
    if options.rate_bytes[side].is_some() && options.rate_iops[side].is_some() {
        return Err(job.wrong("rate and rate_iops are both asked for; leave one out"));
    }
    if job.rate_iops().is_some_and(|rate| rate > workload::MAX_RATE_IOPS) {
        return Err(job.wrong("more than 10^9 requests per second are asked for; lower rate or rate_iops"));
    }
    if options.think_ns > 0 && job.effective_depth() > 1 {
        return Err(job
            .wrong(format!("thinktime with iodepth={}: the pause would be each request's own; use iodepth=1 and numjobs", options.depth)));
    }
    Ok(())
}

/// How a job reaches its files, in words, by option.
fn manner(job: &Job) -> [(&'static str, String); 5] {
    let options = &job.options;
    let engine = match options.engine {
        FioEngine::Blocking => "psync",
        _ => options.engine_name.as_str(),
    };
    let flag = |on: bool| if on { "1" } else { "0" }.to_string();
    let sync = match options.sync {
        SyncMode::None => "none",
        SyncMode::Full => "sync",
        SyncMode::Data => "dsync",
    };
    [
        ("ioengine", engine.into()),
        ("direct", flag(options.direct)),
        ("sync", sync.into()),
        ("end_fsync", flag(options.end_fsync)),
        ("invalidate", flag(options.invalidate)),
    ]
}

/// Jobs that run together reach their files in the same way.
fn check_together(group: &[Job]) -> Result<(), FioError> {
    let (first, others) = group.split_first().expect("no group is empty");
    for job in others {
        for ((option, a), (_, b)) in manner(first).into_iter().zip(manner(job)) {
            if a != b {
                return Err(job.wrong(format!(
                    "{option}={b}: the job '{}' runs at the same time with {option}={a}, and jobs that run together reach their files in the same way; give both the same, or put stonewall into '{}'",
                    cut(&first.name),
                    cut(&job.name)
                )));
            }
        }
    }
    Ok(())
}
