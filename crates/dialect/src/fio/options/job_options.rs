use super::cmdprio::CommandPriority;
use super::criterion::Criterion;
use super::kinds::{
    self, BlockOption, Checked, Distribution, ExitWhat, Fallocate, FileOperation, FileService,
    Lock, Logs, Strides, SyncMode, Unified,
};
use super::latency_goal::LatencyGoal;
use super::method::Method;
use super::min_rates::MinRates;
use super::pattern::Fill;
use super::sync_every::SyncEvery;
use super::tolerated::Tolerated;
use super::trace::{Replay, Trace};
use super::value::{Amount, Reason, number, size};
use machine::{Engine, Hint, IoClass, IoPriority};
use std::sync::Arc;
use workload::SizeMix;

/// fio's default.
pub(crate) const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Defaults are fio's.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub description: Option<String>,
    pub reads: bool,
    pub writes: bool,
    /// Instead of writes, or before each.
    pub trims: bool,
    /// `trimwrite`: writes what it trimmed.
    pub then_writes: bool,
    pub random: bool,
    /// `rw=read:8k`: gap after each request.
    pub hole_bytes: u64,
    /// `rw=read:-8k`: step back from the last request's end.
    pub back_bytes: u64,
    /// `random_generator=lfsr`: offsets do not repeat, even without a map.
    pub every_place: bool,
    pub strides: Strides,
    /// `rw=randread:8`: requests for each random offset.
    pub run: u64,
    /// `rw_sequencer=identical`.
    pub identical: bool,
    /// `percentage_random` of reads and writes.
    pub random_percent: [u8; 2],
    pub mode: &'static str,
    /// `rwmixread`, in percent.
    pub mix_read: u8,
    /// Of reads and of writes.
    pub blocks: [SizeMix; 2],
    /// Also for writes after trims.
    pub trim_blocks: SizeMix,
    /// For reads, writes, trims.
    pub blocks_by: [BlockOption; 3],
    /// `bs_is_seq_rand`: sizes of sequential and random requests.
    pub blocks_by_order: bool,
    /// `bs_unaligned`: any size in `bsrange`.
    pub unaligned: bool,
    pub align_bytes: Option<u64>,
    pub size: Option<Amount>,
    /// `filesize`, a range.
    pub file_bytes: Option<[u64; 2]>,
    pub io_size: Option<Amount>,
    pub number_ios: Option<u64>,
    pub loops: u64,
    /// Clones alternate between several.
    pub directories: Vec<String>,
    pub filenames: Vec<String>,
    /// `nrfiles`, if names are generated.
    pub files: u32,
    /// `openfiles`; 0: all.
    pub open_files: u64,
    pub service: FileService,
    /// `file_service_type=random:8`.
    pub service_run: u64,
    pub filename_format: String,
    pub unlink: bool,
    pub unlink_each_loop: bool,
    pub create_on_open: bool,
    pub create_only: bool,
    pub allow_create: bool,
    /// `bwavgtime`; like `iops_windows`, in half seconds.
    pub bandwidth_windows: usize,
    pub iops_windows: usize,
    /// `fill_device`: writes until the disk is full.
    pub fills: bool,
    pub pre_read: bool,
    pub offset: Amount,
    /// `file_append`: begins at the file's end, not at `offset`.
    pub append: bool,
    /// `offset_align` of a percentage; 0: the smallest request.
    pub offset_align_bytes: u64,
    pub offset_increment: Amount,
    pub clones: u32,
    pub depth: u32,
    /// Submitted together; `None`: all that are ready.
    pub batch: Option<u32>,
    pub fixedbufs: bool,
    /// `iodepth_batch_complete_min`.
    pub batch_complete: u32,
    /// `iodepth_low`.
    pub low: Option<u32>,
    pub batch_complete_max: Option<u32>,
    pub engine: Engine,
    pub engine_name: String,
    pub file_operation: Option<FileOperation>,
    pub direct: bool,
    /// Implies `direct`, as in fio 3.33.
    pub atomic: bool,
    pub sync: SyncMode,
    pub sync_every: SyncEvery,
    /// `end_fsync` or `fsync_on_close`.
    pub end_fsync: bool,
    pub fallocate: Fallocate,
    pub locks: Option<Lock>,
    pub overwrite: bool,
    pub group_reporting: bool,
    pub stonewall: bool,
    /// Shell commands, run for each clone before and after its set.
    pub command_before: Option<String>,
    pub command_after: Option<String>,
    pub scheduler: Option<String>,
    pub wait_for: Option<String>,
    pub new_group: bool,
    pub exitall: bool,
    pub exit_what: ExitWhat,
    pub exitall_on_error: bool,
    pub tolerated: Tolerated,
    /// Empty: all.
    pub processors: Vec<u32>,
    pub io_class: Option<IoClass>,
    /// From 0, the highest, to 7.
    pub io_level: Option<u8>,
    pub cmdprio: CommandPriority,
    pub nice: Option<i32>,
    /// `cpus_allowed_policy=split`.
    pub split_processors: bool,
    /// `io_submit_mode=offload`: threads make a blocking engine's calls.
    pub offload: bool,
    /// Weight among jobs of one `flow_id`; 0: none.
    pub flow: u64,
    pub flow_id: u64,
    /// Pause when ahead; 0: as short as possible.
    pub flow_sleep_ns: u64,
    pub runtime_ns: u64,
    pub time_based: bool,
    pub ramp_ns: u64,
    /// A range.
    pub start_delay_ns: [u64; 2],
    pub steady: Criterion,
    pub latency: LatencyGoal,
    /// Per second, of reads and writes.
    pub rate_bytes: [Option<u64>; 2],
    pub rate_iops: [Option<u64>; 2],
    pub poisson: bool,
    pub min_rates: MinRates,
    pub think_ns: u64,
    /// `thinktime_spin`, in which fio computes.
    pub think_spin_ns: u64,
    /// `rate_ignore_thinktime`: rates do not catch up.
    pub ignores_pauses: bool,
    /// Requests between pauses.
    pub think_blocks: Option<u64>,
    /// `thinktime_blocks_type=issue`: requests count when they are issued.
    pub think_at_issue: bool,
    /// 0: only requests count.
    pub think_io_ns: u64,
    pub serialize_overlap: bool,
    /// Of each clone.
    pub locked_bytes: u64,
    /// `hipri`.
    pub kernel_polls: bool,
    pub distribution: Distribution,
    pub no_random_map: bool,
    pub seed: Option<u64>,
    pub repeatable: bool,
    pub invalidate: bool,
    pub huge_pages: bool,
    /// `None`: by the requests' order.
    pub hint: Option<Hint>,
    /// `zero_buffers` is 100.
    pub compressible_percent: u8,
    pub duplicate_percent: u8,
    /// `dedupe_mode=working_set`.
    pub working_set: bool,
    /// Percent of the job's size.
    pub working_set_percent: u8,
    /// `dedupe_global`.
    pub global_set: bool,
    pub verify: Option<Method>,
    pub verify_given: bool,
    pub pattern: Fill,
    /// The pattern restarts after this; 0: at each request.
    pub pattern_interval: u32,
    /// Of the header in its block.
    pub verify_offset: u32,
    pub state_save: bool,
    /// `verify_state_save` was explicit: failing to save is an error.
    pub state_asked: bool,
    pub state_load: bool,
    /// Ignores writes after the last sync.
    pub state_synced: bool,
    pub replay: Replay,
    /// The replayed trace, with all options applied.
    pub trace: Option<Arc<Trace>>,
    /// `verify_only`, if the writes are not simply its reads.
    pub checked: Option<Checked>,
    /// For each header; `None`: a request.
    pub verify_interval: Option<u32>,
    /// Writes before reading back; 0: all.
    pub verify_backlog: u64,
    /// Writes read back before the next one; 0: all.
    pub verify_batch: u64,
    pub verify_dump: bool,
    pub verify_only: bool,
    /// Empty: random data.
    pub buffer_pattern: Vec<u8>,
    pub do_verify: bool,
    pub percentiles: Vec<f64>,
    pub clat_percentiles: bool,
    pub lat_percentiles: bool,
    pub slat_percentiles: bool,
    /// Neither `disable_slat` nor `gtod_reduce`.
    pub times_submission: bool,
    /// Neither `disable_clat` nor `gtod_reduce`.
    pub reports_completion: bool,
    /// Neither `disable_lat` nor `gtod_reduce`.
    pub reports_latency: bool,
    pub unified: Unified,
    pub stats: bool,
    pub logs: Logs,
    pub kb_base: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            description: None,
            reads: true,
            writes: false,
            trims: false,
            then_writes: false,
            random: false,
            hole_bytes: 0,
            back_bytes: 0,
            every_place: false,
            strides: Strides::default(),
            run: 1,
            identical: false,
            random_percent: [100; 2],
            mode: "read",
            mix_read: 50,
            blocks: [SizeMix::one(4096), SizeMix::one(4096)],
            trim_blocks: SizeMix::one(4096),
            blocks_by: [BlockOption::Size; 3],
            blocks_by_order: false,
            unaligned: false,
            align_bytes: None,
            size: None,
            file_bytes: None,
            io_size: None,
            number_ios: None,
            loops: 1,
            directories: Vec::new(),
            filenames: Vec::new(),
            files: 1,
            open_files: 0,
            service: FileService::RoundRobin,
            service_run: 1,
            filename_format: "$jobname.$jobnum.$filenum".into(),
            unlink: false,
            unlink_each_loop: false,
            create_on_open: false,
            create_only: false,
            allow_create: true,
            bandwidth_windows: 1,
            iops_windows: 1,
            fills: false,
            pre_read: false,
            offset: Amount::Bytes(0),
            append: false,
            offset_align_bytes: 0,
            offset_increment: Amount::Bytes(0),
            clones: 1,
            depth: 1,
            batch: None,
            fixedbufs: false,
            batch_complete: 1,
            low: None,
            batch_complete_max: None,
            engine: Engine::Sync,
            engine_name: "psync".into(),
            file_operation: None,
            direct: false,
            atomic: false,
            sync: SyncMode::None,
            sync_every: SyncEvery::default(),
            end_fsync: false,
            fallocate: Fallocate::Reserve,
            locks: None,
            overwrite: false,
            group_reporting: false,
            stonewall: false,
            command_before: None,
            command_after: None,
            scheduler: None,
            wait_for: None,
            new_group: false,
            exitall: false,
            exit_what: ExitWhat::Group,
            exitall_on_error: false,
            tolerated: Tolerated::default(),
            processors: Vec::new(),
            io_class: None,
            io_level: None,
            cmdprio: CommandPriority::default(),
            nice: None,
            split_processors: false,
            offload: false,
            flow: 0,
            flow_id: 0,
            flow_sleep_ns: 0,
            runtime_ns: 0,
            time_based: false,
            ramp_ns: 0,
            start_delay_ns: [0; 2],
            steady: Criterion::default(),
            latency: LatencyGoal::default(),
            rate_bytes: [None; 2],
            rate_iops: [None; 2],
            poisson: false,
            min_rates: MinRates::default(),
            think_ns: 0,
            think_spin_ns: 0,
            ignores_pauses: false,
            think_blocks: None,
            think_at_issue: false,
            think_io_ns: 0,
            serialize_overlap: false,
            locked_bytes: 0,
            kernel_polls: false,
            distribution: Distribution::Uniform,
            no_random_map: false,
            seed: None,
            repeatable: true,
            invalidate: true,
            huge_pages: false,
            hint: None,
            compressible_percent: 0,
            duplicate_percent: 0,
            working_set: false,
            working_set_percent: 5,
            global_set: false,
            verify: None,
            verify_given: false,
            pattern: Fill::default(),
            pattern_interval: 0,
            verify_offset: 0,
            state_save: true,
            state_asked: false,
            state_load: false,
            state_synced: false,
            replay: Replay::default(),
            trace: None,
            checked: None,
            verify_interval: None,
            verify_backlog: 0,
            verify_batch: 0,
            verify_dump: false,
            verify_only: false,
            buffer_pattern: Vec::new(),
            do_verify: true,
            percentiles: PERCENTILES.to_vec(),
            clat_percentiles: true,
            lat_percentiles: false,
            slat_percentiles: false,
            times_submission: true,
            reports_completion: true,
            reports_latency: true,
            unified: Unified::Apart,
            stats: true,
            logs: Logs::default(),
            kb_base: 1024,
        }
    }
}

impl Options {
    pub(crate) fn sizes_range(&self) -> bool {
        self.file_bytes.is_some_and(|[low, high]| low < high)
    }

    pub(crate) fn verifies(&self) -> Option<Method> {
        // The null engine stores no data to read.
        self.verify.filter(|_| self.engine.does_io())
    }

    /// As in fio, a level without a class means best effort.
    pub fn io_priority(&self) -> Option<IoPriority> {
        (self.io_class.is_some() || self.io_level.is_some()).then(|| IoPriority {
            class: self.io_class.unwrap_or(IoClass::BestEffort),
            level: self.io_level.unwrap_or(0),
        })
    }

    /// All requests of a run have its random offset.
    pub(crate) fn run_stays(&self) -> bool {
        self.identical && self.random && self.run > 1
    }

    /// `None`: only time counts.
    pub(crate) fn pauses_after(&self) -> Option<u64> {
        self.think_blocks.or((self.think_io_ns == 0).then_some(1))
    }

    pub fn read_percent(&self) -> u8 {
        match (self.reads, self.writes) {
            (true, true) => self.mix_read,
            (true, false) => 100,
            _ => 0,
        }
    }

    pub(crate) fn set_mode(&mut self, text: &str) -> Result<(), Reason> {
        let (mode, more) =
            text.split_once(':').map_or((text, None), |(mode, more)| (mode, Some(more)));
        (self.trims, self.then_writes) = (mode.contains("trim"), mode.ends_with("trimwrite"));
        let (reads, writes, random, mode) = match mode {
            "read" => (true, false, false, "read"),
            "write" => (false, true, false, "write"),
            "randread" => (true, false, true, "randread"),
            "randwrite" => (false, true, true, "randwrite"),
            "rw" | "readwrite" => (true, true, false, "rw"),
            "randrw" => (true, true, true, "randrw"),
            "trim" => (false, true, false, "trim"),
            "randtrim" => (false, true, true, "randtrim"),
            "trimwrite" => (false, true, false, "trimwrite"),
            "randtrimwrite" => (false, true, true, "randtrimwrite"),
            _ => {
                let known = "read, write, rw, trim, trimwrite, randread, randwrite, randrw, randtrim, randtrimwrite";
                return Err(format!("invalid value; write one of {known}"));
            }
        };
        (self.hole_bytes, self.back_bytes, self.run) = match more {
            None => (0, 0, 1),
            Some(more) if random => (0, 0, number(more, 1, u64::from(u32::MAX))?),
            Some(more) => match more.strip_prefix('-') {
                Some(back) => (0, size(back, self.kb_base)?, 1),
                None => (size(more, self.kb_base)?, 0, 1),
            },
        };
        (self.reads, self.writes, self.random, self.mode) = (reads, writes, random, mode);
        Ok(())
    }

    pub(crate) fn set_engine(&mut self, text: &str) -> Result<(), Reason> {
        self.engine = kinds::parse_engine(text)?;
        self.engine_name = text.into();
        self.file_operation = FileOperation::of_engine(text);
        Ok(())
    }
}
