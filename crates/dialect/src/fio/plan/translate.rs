//! Turns jobs into workloads.

use super::arrange::{Arrangement, ClonePlan};
use super::jobs::Job;
use super::turns::FileTurns;
use crate::fio::options::kinds::{Distribution, SyncMode};
use machine::{Access, Allocation, Buffering, CacheState, Engine, Hint, Memory, NewFile, Reap};
use workload::{BLOCK_BYTES, Data, Pattern, Stop, Workload, rng};

const CENTURY_NS: u64 = 3_155_760_000_000_000_000;
const PURPOSE_CLONE: u64 = 0xf10;
/// Seed of blocks repeated by `dedupe_global`.
const GLOBAL_SET: u64 = 0xded0;

pub(crate) fn engine(job: &Job) -> Engine {
    if job.is_threaded() { Engine::Threads } else { job.options.engine }
}

fn buffering(job: &Job) -> Buffering {
    match (job.is_direct(), job.options.sync) {
        (true, SyncMode::None) => Buffering::Direct,
        (false, SyncMode::None) => Buffering::Buffered,
        (true, _) => Buffering::DirectDsync,
        (false, _) => Buffering::BufferedDsync,
    }
}

pub(crate) fn pattern(job: &Job) -> Pattern {
    let options = &job.options;
    match (options.random, &options.distribution) {
        (false, _) => Pattern::Seq,
        (true, Distribution::Zipf(theta)) => Pattern::Zipf(*theta),
        (true, Distribution::Pareto(h)) => Pattern::Pareto(*h),
        (true, Distribution::Normal { deviation, center }) => {
            // fio hashes what it draws, so popular blocks are scattered.
            Pattern::Normal {
                deviation_percent: *deviation,
                center_percent: *center,
                scattered: true,
            }
        }
        (true, Distribution::Zones { access, share }) => {
            Pattern::HotCold { hot_percent: *share, access_percent: *access }
        }
        // `FileTurns` draws the offset.
        (true, Distribution::ManyZones(_)) => Pattern::Uniform,
        (true, Distribution::Uniform) if options.no_random_map => Pattern::Uniform,
        (true, Distribution::Uniform) => Pattern::Random,
    }
}

pub(crate) fn hint(job: &Job) -> Hint {
    match (job.is_direct(), job.options.hint, job.options.random) {
        (true, ..) => Hint::None,
        (false, Some(hint), _) => hint,
        (false, None, true) => Hint::Random,
        (false, None, false) => Hint::Sequential,
    }
}

fn cache(job: &Job) -> CacheState {
    match (job.options.pre_read, job.options.invalidate) {
        (true, _) => CacheState::Warm,
        (false, true) => CacheState::Cold,
        (false, false) => CacheState::AsIs,
    }
}

pub(crate) fn turns(job: &Job, clone: &ClonePlan, seed: u64) -> FileTurns {
    // With io_size or a time, passes continue until the limit.
    let passes =
        Some(clone.passes).filter(|_| clone.limit_bytes.is_some() && job.options.io_size.is_none());
    let files = clone.files.len() as u64;
    FileTurns::new(job, files, (clone.part, &clone.lengths, clone.file_bytes), seed, passes)
}

pub(crate) fn clone_workload(job: &Job, clone: &ClonePlan, seed: u64) -> Workload {
    let options = &job.options;
    let region = turns(job, clone, seed).region();
    let runtime = Some(options.runtime_ns).filter(|&ns| ns > 0);
    Workload {
        read_percent: options.read_percent(),
        pattern: pattern(job),
        request_bytes: job.request_bytes() as u32,
        sizes: job.sizes(),
        align_bytes: options
            .align_bytes
            .filter(|_| options.random)
            .map(|bytes| bytes.min(u64::from(u32::MAX)) as u32),
        depth: job.effective_depth(),
        threads: 1,
        engine: engine(job),
        buffering: buffering(job),
        hint: hint(job),
        memory: memory(job),
        region_start_bytes: region.0,
        region_bytes: Some(region.1),
        stop: match (runtime, clone.limit_bytes) {
            (Some(ns), _) => Stop::AfterNs(ns),
            // The guide ends it.
            (None, _) if job.is_guided() => Stop::AfterNs(CENTURY_NS),
            (None, bytes) => Stop::AfterBytes(bytes.unwrap_or(region.1)),
        },
        limit_bytes: runtime.and(clone.limit_bytes).filter(|_| !job.is_guided()),
        rate_iops: job.rate_iops().filter(|_| !job.has_schedules()),
        sync_at_end: options.end_fsync,
        data: Data {
            compressible_percent: options.compressible_percent,
            duplicate_percent: options.duplicate_percent,
            repeated_blocks: repeated_blocks(job, clone),
            repeated_seed: (options.global_set && options.working_set).then_some(GLOBAL_SET),
            verify: false,
        },
        seed: rng::derive(seed, PURPOSE_CLONE, u64::from(clone.number)),
        ..Workload::default()
    }
}

/// 0: few blocks are repeated.
fn repeated_blocks(job: &Job, clone: &ClonePlan) -> u64 {
    let options = &job.options;
    if !options.working_set || options.duplicate_percent == 0 {
        return 0;
    }
    let bytes = match clone.lengths.as_slice() {
        [] => clone.part.1.saturating_mul(clone.files.len() as u64),
        lengths => lengths.iter().sum(),
    };
    let set = bytes / 100 * u64::from(options.working_set_percent);
    (set / BLOCK_BYTES as u64).max(1)
}

pub(crate) fn job_workload(
    job: &Job,
    first: &ClonePlan,
    arrangement: &Arrangement,
    seed: u64,
) -> Workload {
    let made = arrangement.files[first.files[0]].made;
    let after_each = job.options.pauses_after() == Some(1) && job.effective_depth() == 1;
    Workload {
        threads: job.options.clones,
        read_percent: job.read_percent(),
        rate_iops: job.rate_iops().map(|rate| rate * f64::from(job.options.clones)),
        allocation: made.map_or(Allocation::Written, NewFile::allocation),
        cache: cache(job),
        think_ns: if after_each { job.options.think_ns } else { 0 },
        ..clone_workload(job, first, seed)
    }
}

fn memory(job: &Job) -> Memory {
    match (job.options.huge_pages, job.options.fixedbufs) {
        (true, _) => Memory::Huge,
        (false, true) => Memory::Registered,
        (false, false) => Memory::Pages,
    }
}

/// fio's own work between completions keeps it from sleeping. Ours takes too little time, so it
/// polls.
fn reap(job: &Job) -> Reap {
    match job.options.batch_complete {
        0 | 1 if engine(job).is_async() && job.effective_depth() > 1 => Reap::Poll,
        completions => Reap::AtLeast(completions.max(1)),
    }
}

pub(crate) fn access(job: &Job, size_bytes: u64) -> Access {
    Access {
        engine: engine(job),
        buffering: buffering(job),
        metadata_sync: job.options.sync == SyncMode::Full,
        hint: hint(job),
        memory: memory(job),
        allocation: Allocation::Written,
        cache: cache(job),
        reap: reap(job),
        kernel_polls: job.options.kernel_polls,
        // As in fio, each stream syncs at its own end.
        sync_at_end: false,
        region: (0, size_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::{Command, Plan};

    fn access_of(words: &str) -> Access {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let command = Command::parse(&words).unwrap();
        let plan = Plan::new(&command.sections, &[]).unwrap();
        access(plan.jobs().next().unwrap(), 1 << 20)
    }

    #[test]
    fn buffers_and_waits_match_fio() {
        let deep = access_of("--name=a --size=1m --ioengine=io_uring --iodepth=8");
        assert_eq!((deep.memory, deep.reap), (Memory::Pages, Reap::Poll));
        for (memory, is) in [("mmaphuge:/mnt/huge", Memory::Huge), ("shm", Memory::Pages)] {
            assert_eq!(access_of(&format!("--name=a --size=1m --mem={memory}")).memory, is);
        }
        let fixed = access_of(
            "--name=a --size=1m --ioengine=io_uring --iodepth=8 --fixedbufs --iodepth_batch_complete_min=4",
        );
        assert_eq!((fixed.memory, fixed.reap), (Memory::Registered, Reap::AtLeast(4)));
        assert_eq!(
            access_of("--name=a --size=1m --ioengine=libaio").reap,
            Reap::AtLeast(1),
            "fio sleeps for each, too"
        );
        assert_eq!(
            access_of("--name=a --size=1m --ioengine=psync --iodepth=8").reap,
            Reap::AtLeast(1)
        );
    }

    #[test]
    fn atomic_is_plain_direct_io_with_a_warning() {
        // fio 3.33 opens with O_DIRECT and 0x800000, which Linux ignores, regardless of direct=.
        for words in ["--name=a --size=1m --atomic=1", "--name=a --size=1m --atomic=1 --direct=0"] {
            assert_eq!(access_of(words).buffering, Buffering::Direct, "{words}");
        }
        let words: Vec<String> = ["--name=a", "--size=1m", "--atomic=1"].map(String::from).to_vec();
        let plan = Plan::new(&Command::parse(&words).unwrap().sections, &[]).unwrap();
        assert!(
            plan.warnings
                .iter()
                .any(|warning| warning.contains("nothing is written with RWF_ATOMIC"))
        );
    }
}
