//! fio's options, one row each.

mod help;

pub use help::{help, option_help};

use super::choices::{
    MAX_FILES, dedupe_mode, distribution, file_service, interval, nice, paths, percentiles,
    power_of_two, processors, range, request, skipped, small, split, trace,
};
use super::tolerated::Tolerated;

use super::job_options::Options;
use super::kinds::{
    BlockOption, ExitWhat, Fallocate, Lock, MAX_COARSENESS, SPREAD_NS, SyncMode, Unified,
    WindowValue,
};
use super::method::Method;
use super::pattern::{pattern, plain_pattern};
use super::value::{
    Reason, amount, by_direction, by_direction_with_trims, count, ends, number, size, switch,
    time_ns,
};
use crate::rows::{self, Form, OptionKind, put};
use Group::{Access, Data, Files, Jobs, Report, Requests, Time};
use OptionKind::{Flag, Ignored, OnlyValues, OnlyZero, Refused, Switch, Text, Value};
use machine::{Hint, IoClass};
use workload::SizeMix;

type ParseResult = Result<(), Reason>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Jobs,
    Files,
    Requests,
    Access,
    Time,
    Data,
    Report,
}

fn windows(text: &str, kb_base: u64) -> Result<usize, Reason> {
    let window_ms = SPREAD_NS / 1_000_000;
    let ms = count(text, kb_base, window_ms, MAX_COUNT)?;
    if ms % window_ms != 0 {
        return Err(format!(
            "halfpower averages over whole half seconds; write {}",
            ms / window_ms * window_ms
        ));
    }
    Ok((ms / window_ms) as usize)
}

fn check_form(form: Form, value: Option<&str>, kb_base: u64) -> ParseResult {
    let given = value.filter(|value| !value.is_empty());
    let text = given.ok_or("it has no value; write one after the =");
    match form {
        Form::Flag => switch(value).map(drop),
        Form::Switch => switch(Some(text?)).map(drop),
        Form::Number => text
            .map(|text| text.strip_prefix('-').unwrap_or(text))
            .map(|text| size(text, kb_base))?
            .map(drop),
        Form::Words(words) => {
            choice(text?, &words.iter().map(|&word| (word, ())).collect::<Vec<_>>())
        }
        Form::Text => Ok(()),
    }
}

pub(crate) type Row = rows::Row<Options, Reason, Group>;

const fn row(names: &'static str, group: Group, takes: OptionKind<Options, Reason>) -> Row {
    Row::new(names, group, takes)
}

const LEAVE: &str = "leave it out";
const SECOND_NS: u64 = 1_000_000_000;
const MAX_DEPTH: u64 = workload::MAX_DEPTH as u64;
const MAX_COUNT: u64 = u32::MAX as u64;

#[rustfmt::skip] // A table reads best with an option a line.
static ROWS: &[Row] = &[
    // As in fio, a job is named after its section.
    row("name", Jobs, Value(|_, _| Ok(()))),
    row("description", Jobs, Text(|o, text| o.description = Some(text))),
    row("numjobs", Jobs, Value(|o, text| put(&mut o.clones, count(text, o.kb_base, 1, u64::from(workload::MAX_THREADS)).map(|n| n as u32)))),
    row("stonewall wait_for_previous", Jobs, Flag(|o, on| o.stonewall = on)),
    row("new_group", Jobs, Flag(|o, on| o.new_group = on)),
    row("group_reporting", Jobs, Flag(|o, on| o.group_reporting = on)),
    row("exitall", Jobs, Flag(|o, on| o.exitall = on)),
    row("exit_what", Jobs, Value(|o, text| put(&mut o.exit_what, choice(text, &[("group", ExitWhat::Group), ("stonewall", ExitWhat::Stonewall), ("all", ExitWhat::All)])))),
    row("exitall_on_error", Jobs, Flag(|o, on| o.exitall_on_error = on)),
    row("thread", Jobs, Flag(|_, _| ())),
    row("threads", Jobs, Flag(|_, _| ())),
    row("cpus_allowed", Jobs, Value(|o, text| put(&mut o.processors, processors(text)))),
    row("cpumask", Jobs, Value(|o, text| put(&mut o.processors, count(text, o.kb_base, 1, u64::MAX).map(|mask| (0..64).filter(|bit| mask >> bit & 1 == 1).collect())))),
    row("cpus_allowed_policy", Jobs, Value(|o, text| put(&mut o.split_processors, choice(text, &[("shared", false), ("split", true)])))),
    row("wait_for", Jobs, Value(|o, text| put(&mut o.wait_for, Ok(Some(text.into()))))),
    row("flow", Jobs, Value(|o, text| put(&mut o.flow, count(text, o.kb_base, 0, MAX_COUNT)))),
    row("flow_id", Jobs, Value(|o, text| put(&mut o.flow_id, count(text, o.kb_base, 0, MAX_COUNT)))),
    row("flow_sleep", Jobs, Value(|o, text| put(&mut o.flow_sleep_ns, count(text, o.kb_base, 0, MAX_COUNT).map(|us| us * 1000)))),
    row("flow_watermark", Jobs, Ignored(Form::Number)),
    row("numa_cpu_nodes numa_mem_policy", Jobs, Refused("start halfpower under numactl")),
    row("nice", Jobs, Value(|o, text| put(&mut o.nice, nice(text).map(Some)))),
    row("prio", Jobs, Value(|o, text| put(&mut o.io_level, count(text, o.kb_base, 0, 7).map(|level| Some(level as u8))))),
    row("prioclass", Jobs, Value(|o, text| put(&mut o.io_class, choice(text, &[("1", IoClass::RealTime), ("2", IoClass::BestEffort), ("3", IoClass::Idle)]).map(Some)))),
    row("cmdprio_percentage", Jobs, Value(|o, text| o.cmdprio.set_percent(text))),
    row("cmdprio_class", Jobs, Value(|o, text| o.cmdprio.set_class(text))),
    row("cmdprio", Jobs, Value(|o, text| o.cmdprio.set_level(text))),
    row("cmdprio_bssplit", Jobs, Value(|o, text| o.cmdprio.set_by_size(text, o.kb_base))),
    row("prio_hint cmdprio_hint", Jobs, Refused("fio 3.33 has no hints; give a priority, with prio and prioclass")),
    row("uid gid", Jobs, Refused("start halfpower as that user")),
    row("cgroup cgroup_weight cgroup_nodelete", Jobs, Refused("start halfpower in the control group")),
    row("exec_prerun", Jobs, Value(|o, text| put(&mut o.command_before, Ok(Some(text.into()))))),
    row("exec_postrun", Jobs, Value(|o, text| put(&mut o.command_after, Ok(Some(text.into()))))),
    row("lockmem", Jobs, Value(|o, text| put(&mut o.locked_bytes, size(text, o.kb_base)))),
    row("profile", Jobs, Refused(LEAVE)),
    row("ioscheduler", Jobs, Value(|o, text| put(&mut o.scheduler, Ok(Some(text.into()))))),
    //
    row("filename", Files, Value(|o, text| put(&mut o.filenames, paths(text)))),
    row("directory", Files, Value(|o, text| put(&mut o.directories, paths(text)))),
    row("filename_format", Files, Value(|o, text| put(&mut o.filename_format, Ok(text.into())))),
    row("unique_filename", Files, Ignored(Form::Switch)),
    row("nrfiles nr_files", Files, Value(|o, text| put(&mut o.files, count(text, o.kb_base, 1, MAX_FILES).map(|n| n as u32)))),
    row("file_service_type", Files, Value(|o, text| {
        file_service(text).map(|service| (o.service, o.service_run) = service)
    })),
    row("openfiles", Files, Value(|o, text| put(&mut o.open_files, count(text, o.kb_base, 0, MAX_COUNT)))),
    row("size", Files, Value(|o, text| put(&mut o.size, amount(text, o.kb_base).map(|size| Some(size).filter(|size| !size.is_nothing()))))),
    row("filesize", Files, Value(|o, text| put(&mut o.file_bytes, ends(text, |text| size(text, o.kb_base)).map(Some)))),
    row("io_size io_limit", Files, Value(|o, text| put(&mut o.io_size, amount(text, o.kb_base).map(|size| Some(size).filter(|size| !size.is_nothing()))))),
    row("number_ios", Files, Value(|o, text| put(&mut o.number_ios, count(text, o.kb_base, 0, u64::MAX).map(|n| Some(n).filter(|&n| n > 0))))),
    row("loops", Files, Value(|o, text| put(&mut o.loops, count(text, o.kb_base, 1, MAX_COUNT)))),
    row("offset fileoffset", Files, Value(|o, text| put(&mut o.offset, amount(text, o.kb_base)))),
    row("offset_increment", Files, Value(|o, text| put(&mut o.offset_increment, amount(text, o.kb_base)))),
    row("offset_align", Files, Value(|o, text| put(&mut o.offset_align_bytes, size(text, o.kb_base)))),
    row("fallocate", Files, Value(|o, text| put(&mut o.fallocate, choice(text, &[("native", Fallocate::Reserve), ("posix", Fallocate::Reserve), ("1", Fallocate::Reserve),
        ("keep", Fallocate::Keep), ("truncate", Fallocate::Truncate), ("none", Fallocate::None), ("0", Fallocate::None)])))),
    row("overwrite", Files, Switch(|o, on| o.overwrite = on)),
    row("create_on_open", Files, Switch(|o, on| o.create_on_open = on)),
    row("allow_file_create", Files, Switch(|o, on| o.allow_create = on)),
    row("pre_read", Files, Switch(|o, on| o.pre_read = on)),
    row("unlink", Files, Switch(|o, on| o.unlink = on)),
    row("unlink_each_loop", Files, Switch(|o, on| o.unlink_each_loop = on)),
    row("create_serialize create_fsync", Files, Ignored(Form::Switch)),
    row("create_only", Files, Switch(|o, on| o.create_only = on)),
    row("fill_device fill_fs", Files, Switch(|o, on| o.fills = on)),
    row("file_append", Files, Switch(|o, on| o.append = on)),
    row("opendir", Files, OnlyValues(&["0"], "name the files, with filename")),
    row("lockfile", Files, Value(|o, text| put(&mut o.locks, choice(text, &[("none", None), ("exclusive", Some(Lock::All)), ("readwrite", Some(Lock::Writes))])))),
    // --destroy-data names what may be overwritten.
    row("allow_mounted_write", Files, Ignored(Form::Switch)),
    //
    row("rw readwrite", Requests, Value(Options::set_mode)),
    row("rwmixread", Requests, Value(|o, text| put(&mut o.mix_read, count(text, o.kb_base, 0, 100).map(|n| n as u8)))),
    row("rwmixwrite", Requests, Value(|o, text| put(&mut o.mix_read, count(text, o.kb_base, 0, 100).map(|n| 100 - n as u8)))),
    row("bs blocksize", Requests, Value(|o, text| {
        let one = |text: &str| size(text, o.kb_base).and_then(request).map(SizeMix::one);
        let sizes = match text.split_once('-').filter(|(first, _)| !first.is_empty()) {
            // As in fio: of two sizes with a dash, the first is for reads, the second for writes
            // and trims;
            Some((reads, others)) if !text.contains(',') => one(reads).and_then(|reads| one(others).map(|others| [Some(reads), Some(others.clone()), Some(others)])),
            // with sizes for each direction, the second is ignored.
            _ => by_direction_with_trims(text, |text| one(text.split_once('-').filter(|(first, _)| !first.is_empty()).map_or(text, |(first, _)| first))),
        };
        o.set_blocks(BlockOption::Size, sizes)
    })),
    row("bsrange blocksize_range", Requests, Value(|o, text| o.set_blocks(BlockOption::Range, by_direction_with_trims(text, |text| range(text, o.kb_base))))),
    row("bssplit", Requests, Value(|o, text| o.set_blocks(BlockOption::Split, by_direction_with_trims(text, |text| split(text, o.kb_base))))),
    row("bs_is_seq_rand", Requests, Switch(|o, on| o.blocks_by_order = on)),
    row("bs_unaligned blocksize_unaligned", Requests, Flag(|o, on| o.unaligned = on)),
    row("ba blockalign", Requests, Value(|o, text| {
        let align = by_direction(text, |text| size(text, o.kb_base))?[usize::from(!o.reads)];
        put(&mut o.align_bytes, Ok(Some(align)))
    })),
    row("random_distribution", Requests, Value(|o, text| put(&mut o.distribution, distribution(text)))),
    row("percentage_random", Requests, Value(|o, text| put(&mut o.random_percent, by_direction(text, percent)))),
    row("norandommap", Requests, Flag(|o, on| o.no_random_map = on)),
    row("softrandommap", Requests, Ignored(Form::Switch)),
    row("random_generator", Requests, Value(|o, text| {
        put(&mut o.every_place, choice(text, &[("tausworthe", false), ("tausworthe64", false), ("lfsr", true)]))
    })),
    row("randseed", Requests, Value(|o, text| put(&mut o.seed, count(text, o.kb_base, 0, u64::MAX).map(Some)))),
    row("randrepeat", Requests, Switch(|o, on| o.repeatable = on)),
    row("allrandrepeat", Requests, Switch(|o, on| o.repeatable = on)),
    row("serialize_overlap", Requests, Switch(|o, on| o.serialize_overlap = on)),
    row("rw_sequencer", Requests, Value(|o, text| put(&mut o.identical, choice(text, &[("sequential", false), ("identical", true)])))),
    row("trim_percentage trim_verify_zero trim_backlog trim_backlog_batch", Requests, OnlyValues(&["0"], "a job trims with rw=trim or rw=trimwrite: leave it out")),
    row("zonemode", Requests, Value(|o, text| match text {
        "zbd" => Err("zoned block devices are not supported; use none or strided".into()),
        _ => put(&mut o.strides.strided, choice(text, &[("none", Some(false)), ("strided", Some(true))])),
    })),
    row("zonesize", Requests, Value(|o, text| put(&mut o.strides.size, size(text, o.kb_base)))),
    row("zonerange", Requests, Value(|o, text| put(&mut o.strides.range, size(text, o.kb_base)))),
    row("zoneskip", Requests, Value(|o, text| put(&mut o.strides.skip, size(text, o.kb_base)))),
    row("zonecapacity read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits zone_reset_threshold zone_reset_frequency",
        Requests, OnlyValues(&["0"], "zoned block devices are not supported: leave it out")),
    row("read_iolog", Requests, Value(|o, text| put(&mut o.replay.trace, trace(text)))),
    row("read_iolog_chunked", Requests, Ignored(Form::Switch)),
    row("replay_no_stall", Requests, Switch(|o, on| o.replay.no_stall = on)),
    row("replay_time_scale", Requests, Value(|o, text| put(&mut o.replay.time_percent, count(text, o.kb_base, 1, MAX_COUNT)))),
    row("replay_redirect", Requests, Value(|o, text| put(&mut o.replay.redirect, Ok(Some(text.into()))))),
    row("replay_align", Requests, Value(|o, text| put(&mut o.replay.align, power_of_two(text, o.kb_base)))),
    row("replay_scale", Requests, Value(|o, text| put(&mut o.replay.scale, count(text, o.kb_base, 1, MAX_COUNT)))),
    row("replay_skip", Requests, Value(|o, text| put(&mut o.replay.skip, skipped(text)))),
    row("merge_blktrace_file merge_blktrace_scalars merge_blktrace_iters", Requests, Refused(LEAVE)),
    row("write_iolog", Requests, Value(|o, text| put(&mut o.logs.requests, Ok(Some(text.into()))))),
    //
    row("ioengine", Access, Value(Options::set_engine)),
    row("iodepth", Access, Value(|o, text| put(&mut o.depth, count(text, o.kb_base, 1, MAX_DEPTH).map(|n| n as u32)))),
    row("iodepth_batch iodepth_batch_submit", Access, Value(|o, text| put(&mut o.batch, count(text, o.kb_base, 0, MAX_DEPTH).map(|n| Some(n as u32))))),
    row("iodepth_batch_complete_min iodepth_batch_complete", Access, Value(|o, text| put(&mut o.batch_complete, count(text, o.kb_base, 0, MAX_DEPTH).map(|n| n as u32)))),
    row("iodepth_batch_complete_max", Access, Value(|o, text| put(&mut o.batch_complete_max, count(text, o.kb_base, 0, MAX_DEPTH).map(|n| Some(n as u32))))),
    row("iodepth_low", Access, Value(|o, text| put(&mut o.low, count(text, o.kb_base, 0, MAX_DEPTH).map(|n| Some(n as u32))))),
    row("direct", Access, Switch(|o, on| o.direct = on)),
    row("buffered", Access, Switch(|o, on| o.direct = !on)),
    row("sync", Access, Value(|o, text| {
        put(&mut o.sync, choice(text, &[("none", SyncMode::None), ("0", SyncMode::None), ("sync", SyncMode::Full), ("1", SyncMode::Full), ("dsync", SyncMode::Data)]))
    })),
    row("fsync", Access, Value(|o, text| put(&mut o.sync_every.file, count(text, o.kb_base, 0, MAX_COUNT)))),
    row("fdatasync", Access, Value(|o, text| put(&mut o.sync_every.data, count(text, o.kb_base, 0, MAX_COUNT)))),
    row("end_fsync", Access, Switch(|o, on| o.end_fsync = on)),
    row("fsync_on_close", Access, Switch(|o, on| o.end_fsync = on)),
    row("sync_file_range", Access, Value(|o, text| o.sync_every.set_range(text))),
    row("write_barrier", Access, OnlyValues(&["0"], "use fsync or fdatasync")),
    row("atomic", Access, Switch(|o, on| o.atomic = on)),
    row("invalidate", Access, Switch(|o, on| o.invalidate = on)),
    row("fadvise_hint", Access, Value(|o, text| put(&mut o.hint, choice(text, &[("0", Some(Hint::None)), ("none", Some(Hint::None)), ("1", None), ("random", Some(Hint::Random)), ("sequential", Some(Hint::Sequential))])))),
    row("write_hint", Access, OnlyValues(&["none"], LEAVE)),
    row("mem iomem", Access, Value(|o, text| put(&mut o.huge_pages, choice(text.split(':').next().unwrap_or(text),
        &[("malloc", false), ("mmap", false), ("shm", false), ("mmapshared", false), ("mmaphuge", true), ("shmhuge", true)])))),
    row("mem_align iomem_align hugepage-size", Access, Ignored(Form::Number)),
    row("io_submit_mode", Access, Value(|o, text| put(&mut o.offload, choice(text, &[("inline", false), ("offload", true)])))),
    row("fixedbufs", Access, Flag(|o, on| o.fixedbufs = on)),
    row("userspace_reap registerfiles", Access, Ignored(Form::Flag)),
    row("nowait", Access, Ignored(Form::Switch)),
    row("nonvectored sqthread_poll_cpu", Access, Ignored(Form::Number)),
    row("force_async hipri_percentage", Access, OnlyValues(&["0"], "requests are handed over at once and complete by interrupt: leave it out")),
    row("uncached", Access, OnlyValues(&["0"], "use direct=1")),
    row("hipri", Access, Flag(|o, on| o.kernel_polls = on)),
    row("sqthread_poll", Access, OnlyZero("requests are handed over by calls: leave it out")),
    row("thp", Access, OnlyValues(&["0"], "mapped memory has ordinary pages: leave it out")),
    row("cmd_type", Access, Refused("requests go through the block layer or a file: leave it out")),
    // Of engines that halfpower does not have.
    row("readfua writefua sg_write_mode stream_id", Access, Refused("requests go through the block layer: use sync or fsync")),
    row("stat_type", Files, OnlyValues(&["stat"], "filestat asks for a file's attributes by its name")),
    row("cpuload cpuchunks cpumode exit_on_io_done", Jobs, Refused("start a program that computes, such as stress-ng, at the same time")),
    row("program arguments grace_time std_redirect", Jobs, Refused("start the program before or at the same time as halfpower")),
    row("hostname port protocol interface listen nodelay pingpong mss window_size ttl", Access, Refused("measure a network with iperf3 or fio")),
    row("uri bindname verb clientname clustername busy_poll pool rbdname", Access, Refused("mount or map the storage, and name its file or device")),
    row("donorname inplace skip_bad chunk_size namenode", Access, Refused("its engine is not there: leave it out, or run it with fio")),
    //
    row("runtime timeout", Time, Value(|o, text| put(&mut o.runtime_ns, time_ns(text, SECOND_NS)))),
    row("time_based", Time, Flag(|o, on| o.time_based = on)),
    row("ramp_time", Time, Value(|o, text| put(&mut o.ramp_ns, time_ns(text, SECOND_NS)))),
    row("startdelay start_delay", Time, Value(|o, text| put(&mut o.start_delay_ns, ends(text, |text| time_ns(text, SECOND_NS))))),
    row("thinktime", Time, Value(|o, text| put(&mut o.think_ns, time_ns(text, 1000)))),
    row("thinktime_blocks", Time, Value(|o, text| put(&mut o.think_blocks, count(text, o.kb_base, 0, MAX_COUNT).map(|n| Some(n.max(1)))))),
    row("thinktime_iotime", Time, Value(|o, text| put(&mut o.think_io_ns, time_ns(text, SECOND_NS)))),
    row("thinktime_blocks_type", Time, Value(|o, text| put(&mut o.think_at_issue, choice(text, &[("complete", false), ("issue", true)])))),
    row("thinktime_spin", Time, Value(|o, text| put(&mut o.think_spin_ns, time_ns(text, 1000)))),
    row("rate", Time, Value(|o, text| put(&mut o.rate_bytes, rates(text, o.kb_base)))),
    row("rate_iops", Time, Value(|o, text| put(&mut o.rate_iops, rates(text, o.kb_base)))),
    row("rate_process", Time, Value(|o, text| put(&mut o.poisson, choice(text, &[("linear", false), ("poisson", true)])))),
    row("rate_cycle ratecycle", Time, Value(|o, text| put(&mut o.min_rates.cycle_ns, count(text, o.kb_base, 0, MAX_COUNT).map(|ms| ms * 1_000_000)))),
    row("rate_min ratemin", Time, Value(|o, text| put(&mut o.min_rates.bytes, rates(text, o.kb_base)))),
    row("rate_iops_min", Time, Value(|o, text| put(&mut o.min_rates.requests, rates(text, o.kb_base)))),
    row("rate_ignore_thinktime", Time, Switch(|o, on| o.ignores_pauses = on)),
    row("max_latency", Time, Value(|o, text| put(&mut o.latency.max_ns, by_direction(text, |text| time_ns(text, 1000))))),
    row("latency_target", Time, Value(|o, text| put(&mut o.latency.target_ns, time_ns(text, 1000)))),
    row("latency_window", Time, Value(|o, text| put(&mut o.latency.window_ns, time_ns(text, 1000)))),
    row("latency_percentile", Time, Value(|o, text| o.latency.set_percent(text))),
    row("latency_run", Time, Switch(|o, on| o.latency.goes_on = on)),
    row("steadystate ss", Time, Value(|o, text| o.steady.set(text))),
    row("steadystate_duration ss_dur", Time, Value(|o, text| put(&mut o.steady.duration_ns, time_ns(text, SECOND_NS)))),
    row("steadystate_ramp_time ss_ramp", Time, Value(|o, text| put(&mut o.steady.ramp_ns, time_ns(text, SECOND_NS)))),
    row("clocksource", Time, Ignored(Form::Words(&["gettimeofday", "clock_gettime", "cpu"]))),
    row("gtod_cpu", Time, Ignored(Form::Number)),
    //
    row("refill_buffers", Data, Flag(|_, _| ())),
    row("scramble_buffers", Data, Ignored(Form::Switch)),
    row("zero_buffers", Data, Flag(|o, on| o.compressible_percent = if on { 100 } else { 0 })),
    row("buffer_pattern", Data, Value(|o, text| put(&mut o.buffer_pattern, plain_pattern(text)))),
    row("buffer_compress_percentage", Data, Value(|o, text| put(&mut o.compressible_percent, count(text, o.kb_base, 0, 100).map(|n| n as u8)))),
    row("buffer_compress_chunk", Data, Ignored(Form::Number)),
    row("dedupe_percentage", Data, Value(|o, text| put(&mut o.duplicate_percent, count(text, o.kb_base, 0, 100).map(|n| n as u8)))),
    row("dedupe_mode", Data, Value(|o, text| put(&mut o.working_set, dedupe_mode(text)))),
    row("dedupe_working_set_percentage", Data, Value(|o, text| put(&mut o.working_set_percent, count(text, o.kb_base, 1, 100).map(|n| n as u8)))),
    row("dedupe_global", Data, Switch(|o, on| o.global_set = on)),
    row("verify", Data, Value(|o, text| {
        o.verify_given = true;
        put(&mut o.verify, Method::named(text))
    })),
    row("verify_pattern", Data, Value(|o, text| {
        if !o.verify_given {
            // As in fio, a pattern without verify verifies, with headers.
            o.verify = Some(Method::PatternHeader);
        }
        put(&mut o.pattern, pattern(text))
    })),
    row("verify_interval", Data, Value(|o, text| put(&mut o.verify_interval, interval(text, o.kb_base)))),
    row("do_verify", Data, Switch(|o, on| o.do_verify = on)),
    row("verify_only", Data, Flag(|o, on| o.verify_only = on)),
    row("verify_fatal", Data, Ignored(Form::Switch)),
    row("verify_dump", Data, Switch(|o, on| o.verify_dump = on)),
    row("verify_async verifysort verifysort_nr", Data, Ignored(Form::Number)),
    row("verify_async_cpus", Data, Ignored(Form::Text)),
    row("verify_backlog", Data, Value(|o, text| put(&mut o.verify_backlog, size(text, o.kb_base)))),
    row("verify_backlog_batch", Data, Value(|o, text| put(&mut o.verify_batch, size(text, o.kb_base)))),
    row("verify_offset", Data, Value(|o, text| put(&mut o.verify_offset, small(text, o.kb_base)))),
    row("verify_pattern_interval", Data, Value(|o, text| put(&mut o.pattern_interval, small(text, o.kb_base)))),
    row("verify_state_save", Data, Switch(|o, on| (o.state_save, o.state_asked) = (on, on))),
    row("verify_state_load", Data, Switch(|o, on| o.state_load = on)),
    row("verify_policy", Data, Value(|o, text| put(&mut o.state_synced, choice(text, &[("completed", false), ("fsynced", true)])))),
    row("experimental_verify", Data, Ignored(Form::Switch)),
    row("verify_header_seed verify_write_sequence", Data, OnlyValues(&["0", "1"], LEAVE)),
    row("continue_on_error", Data, Value(|o, text| {
        let ignored = o.tolerated.ignored;
        put(&mut o.tolerated, choice(text, &Tolerated::CHOICES).map(|chosen| Tolerated { ignored, ..chosen }))
    })),
    row("ignore_error", Data, Value(|o, text| o.tolerated.ignore(text))),
    row("error_dump", Data, Ignored(Form::Switch)),
    //
    row("percentile_list", Report, Value(|o, text| put(&mut o.percentiles, percentiles(text)))),
    row("clat_percentiles", Report, Switch(|o, on| o.clat_percentiles = on)),
    row("lat_percentiles", Report, Switch(|o, on| o.lat_percentiles = on)),
    row("slat_percentiles", Report, Switch(|o, on| o.slat_percentiles = on)),
    row("write_bw_log", Report, Text(|o, text| o.logs.bandwidth = Some(text))),
    row("write_iops_log", Report, Text(|o, text| o.logs.iops = Some(text))),
    row("write_lat_log", Report, Text(|o, text| o.logs.latency = Some(text))),
    row("log_avg_msec", Report, Value(|o, text| put(&mut o.logs.average_ms, count(text, o.kb_base, 0, 86_400_000)))),
    row("log_offset", Report, Switch(|o, on| o.logs.offset = on)),
    row("log_unix_epoch", Report, Switch(|o, on| o.logs.epoch = on)),
    row("per_job_logs", Report, Switch(|o, on| o.logs.per_job = on)),
    row("write_hist_log", Report, Text(|o, text| o.logs.histogram = Some(text))),
    row("log_hist_msec", Report, Value(|o, text| put(&mut o.logs.histogram_ms, count(text, o.kb_base, 0, 86_400_000)))),
    row("log_hist_coarseness", Report, Value(|o, text| put(&mut o.logs.coarseness, count(text, o.kb_base, 0, MAX_COARSENESS.into()).map(|n| n as u32)))),
    row("log_entries log_compression", Report, Ignored(Form::Number)),
    row("log_compression_cpus", Report, Ignored(Form::Text)),
    row("log_store_compressed", Report, OnlyValues(&["0"], "logs are plain text: compress them afterwards")),
    row("log_prio", Report, Switch(|o, on| o.logs.priority = on)),
    row("log_max_value log_window_value", Report, Value(|o, text| {
        let known = [("avg", WindowValue::Mean), ("max", WindowValue::Greatest), ("both", WindowValue::Both), ("0", WindowValue::Mean), ("1", WindowValue::Greatest)];
        put(&mut o.logs.window, choice(text, &known))
    })),
    row("log_issue_time", Report, Switch(|o, on| o.logs.issue_time = on)),
    row("log_alternate_epoch log_alternate_epoch_clock_id", Report,
        OnlyValues(&["0"], "logs have fio's four columns and with log_offset the offset: leave it out")),
    row("bwavgtime", Report, Value(|o, text| put(&mut o.bandwidth_windows, windows(text, o.kb_base)))),
    row("iopsavgtime", Report, Value(|o, text| put(&mut o.iops_windows, windows(text, o.kb_base)))),
    row("stats", Report, Switch(|o, on| o.stats = on)),
    row("unified_rw_reporting", Report, Value(|o, text| {
        let known = [("none", Unified::Apart), ("0", Unified::Apart), ("mixed", Unified::Mixed), ("1", Unified::Mixed), ("both", Unified::Both), ("2", Unified::Both)];
        put(&mut o.unified, choice(text, &known))
    })),
    row("disable_slat", Report, Switch(|o, on| o.times_submission = !on)),
    row("disable_clat", Report, Switch(|o, on| o.reports_completion = !on)),
    row("disable_lat", Report, Switch(|o, on| o.reports_latency = !on)),
    row("gtod_reduce", Report, Switch(|o, on| (o.times_submission, o.reports_completion, o.reports_latency) = (!on, !on, !on))),
    row("disable_bw_measurement disable_bw disk_util block_error_percentiles", Report, Ignored(Form::Switch)),
    row("significant_figures", Report, Ignored(Form::Number)),
    row("unit_base", Report, OnlyValues(&["0", "8"], "rates are in bytes: leave it out")),
    row("kb_base", Report, Value(|o, text| put(&mut o.kb_base, choice(text, &[("1024", 1024), ("1000", 1000)])))),
];

fn choice<T: Copy>(text: &str, known: &[(&str, T)]) -> Result<T, Reason> {
    known.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        format!("invalid value; write one of {}", words.join(", "))
    })
}

fn find(name: &str) -> Option<&'static Row> {
    Row::find(ROWS, name)
}

/// Reports use an option's first name.
pub(crate) fn canonical(name: &str) -> &str {
    match find(name) {
        None => name,
        Some(row)
            if matches!(row.takes, OnlyValues(..) | OnlyZero(_) | Ignored(_) | Refused(_)) =>
        {
            name
        }
        Some(row) => row.names().next().unwrap_or(name),
    }
}

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().flat_map(Row::names)
}

pub(crate) fn is_flag(name: &str) -> bool {
    find(name).is_some_and(|row| matches!(row.takes, Flag(_) | OnlyZero(_) | Ignored(Form::Flag)))
}

impl Options {
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> ParseResult {
        let Some(row) = find(name) else { return Err(unknown(name)) };
        match row.takes {
            Value(set) => {
                let text = value.filter(|value| !value.is_empty());
                set(self, text.ok_or("it has no value; write one after the =")?)
            }
            Switch(set) | Flag(set) => switch(value).map(|on| set(self, on)),
            Text(set) => {
                set(self, value.unwrap_or_default().into());
                Ok(())
            }
            Ignored(form) => check_form(form, value, self.kb_base),
            OnlyZero(hint) => match switch(value)? {
                true => Err(format!("halfpower serves only 0 here; {hint}")),
                false => Ok(()),
            },
            OnlyValues(values, _) if values.contains(&value.unwrap_or("1")) => Ok(()),
            OnlyValues(values, hint) => {
                Err(format!("halfpower serves only {} here; {hint}", values.join(" or ")))
            }
            Refused(hint) => Err(format!("halfpower does not serve it; {hint}")),
        }
    }
}

impl Options {
    /// As in fio, a split counts before a range and that before a size, in any order.
    fn set_blocks(
        &mut self,
        by: BlockOption,
        sizes: Result<[Option<SizeMix>; 3], Reason>,
    ) -> ParseResult {
        let [read, write] = &mut self.blocks;
        let blocks = [read, write, &mut self.trim_blocks].into_iter().zip(&mut self.blocks_by);
        for ((blocks, before), sizes) in blocks.zip(sizes?) {
            if let Some(sizes) = sizes.filter(|_| by >= *before) {
                (*blocks, *before) = (sizes, by);
            }
        }
        Ok(())
    }
}

/// Empty means 100.
fn percent(text: &str) -> Result<u8, Reason> {
    if text.is_empty() { Ok(100) } else { number(text, 0, 100).map(|percent| percent as u8) }
}

fn rates(text: &str, kb_base: u64) -> Result<[Option<u64>; 2], Reason> {
    // As in fio, an empty part is a direction without a limit.
    let limited =
        |place: usize| text.split(',').nth(place).is_none_or(|part| !part.trim().is_empty());
    let [read, write] = by_direction(text, |text| match text {
        "" => Ok(None),
        text => size(text, kb_base).map(|rate| Some(rate).filter(|&rate| rate > 0)),
    })?;
    Ok([read, write.filter(|_| limited(1))])
}

fn unknown(name: &str) -> Reason {
    match nearest(name) {
        Some(near) => format!("unknown option; did you mean {near}?"),
        None => "halfpower does not know it; leave it out".into(),
    }
}

fn nearest(name: &str) -> Option<&'static str> {
    let name = name.replace('-', "_").to_ascii_lowercase();
    let known = ROWS.iter().filter(|row| !matches!(row.takes, Refused(_))).flat_map(Row::names);
    let (distance, near) = known.map(|known| (strsim::levenshtein(&name, known), known)).min()?;
    (distance <= 2 && distance * 3 <= name.len().max(2)).then_some(near)
}

#[cfg(test)]
mod tests;
