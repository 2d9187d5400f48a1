//! Checks options for conflicts, and warns of differences from fio.

use super::jobs::Job;
use crate::fio::options::criterion::whole_seconds;
use crate::fio::options::error::FioError;
use crate::fio::options::jobfile::cut;
use crate::fio::options::kinds::{Distribution, FileService, SyncMode};
use crate::fio::options::method::Method;
use crate::fio::options::value::Amount;
use crate::parse::is_twin;
use machine::units::show_size;
use std::path::Path;

pub(crate) fn check(job: &Job, warnings: &mut Vec<String>) -> Result<(), FioError> {
    check_requests(job, warnings)?;
    check_engine(job, warnings)?;
    if job.options.kernel_polls
        && !matches!(job.options.engine_name.as_str(), "io_uring" | "pvsync2")
    {
        return Err(job.wrong(format!(
            "hipri: only io_uring and pvsync2 let the kernel poll the device; leave it out with ioengine={}",
            job.options.engine_name
        )));
    }
    check_time(job, warnings)?;
    let options = &job.options;
    if !options.random && options.distribution != Distribution::Uniform {
        warnings.push(format!(
            "{}: random_distribution has no effect on the sequential rw={}",
            job.shown(),
            options.mode
        ));
    }
    for part in options.filename_format.split('$').skip(1) {
        if !["jobname", "jobnum", "filenum"].iter().any(|word| part.starts_with(word)) {
            return Err(job.wrong(format!(
                "filename_format: '${}' is unknown; use $jobname, $jobnum and $filenum",
                cut(part)
            )));
        }
    }
    Ok(())
}

fn check_trace(job: &Job, warnings: &mut Vec<String>) -> Result<(), FioError> {
    let options = &job.options;
    if options.replay.trims() {
        warnings.push(format!(
            "{}: in halfpower's own figures (point) the trims count as writes",
            job.shown()
        ));
    }
    if !(options.reads || options.writes) {
        return Err(
            job.wrong("read_iolog: replay_skip leaves nothing of the trace to replay; skip less")
        );
    }
    if options.verify.is_some() {
        return Err(job.wrong(
            "verify with read_iolog: the writes of a trace are not read back; leave verify out",
        ));
    }
    let rated = job.is_rated() || options.think_ns > 0 || options.strides.are_on();
    if rated || options.number_ios.is_some() || options.io_size.is_some() {
        return Err(job.wrong(
            "read_iolog with rate, thinktime, zonesize, number_ios or io_size: the trace sets the order and the times; leave these out",
        ));
    }
    if job.is_threaded() {
        return Err(job
            .wrong("read_iolog with threads: only one of them would replay the trace; use psync, libaio or io_uring"));
    }
    Ok(())
}

fn check_trims(job: &Job, warnings: &mut Vec<String>) -> Result<(), FioError> {
    let options = &job.options;
    if options.verify.is_some() && !options.then_writes {
        return Err(job.wrong("verify: nothing can be read back of what is trimmed; leave it out, or use rw=trimwrite"));
    }
    if job.is_threaded() && options.then_writes {
        return Err(job.wrong(format!(
            "rw={} with threads is not supported; use psync, libaio or io_uring",
            options.mode
        )));
    }
    warnings.push(format!(
        "{}: in halfpower's own figures ({}",
        job.shown(),
        if options.then_writes {
            "point) a trim and its write are one write"
        } else {
            "point) the trims count as writes"
        }
    ));
    Ok(())
}

fn check_requests(job: &Job, warnings: &mut Vec<String>) -> Result<(), FioError> {
    let options = &job.options;
    if options.trace.is_some() {
        return check_trace(job, warnings);
    }
    if options.trims {
        check_trims(job, warnings)?;
    }
    if options.fills {
        check_filling(job)?;
    }
    if options.align_bytes == Some(0) {
        return Err(
            job.wrong("blockalign: every place is a multiple of something; give 512 or more")
        );
    }
    if options.unlink_each_loop && (options.loops > 1 || options.time_based) {
        warnings.push(format!(
            "{}: unlink_each_loop=1: the files are laid out once for all loops",
            job.shown()
        ));
    }
    if options.min_rates.any() && job.is_threaded() {
        warnings.push(format!(
            "{}: rate_min: threads below the minimum continue (fio would end the job)",
            job.shown()
        ));
    }
    check_order(job, warnings)?;
    check_verify(job, warnings)
}

fn check_filling(job: &Job) -> Result<(), FioError> {
    let options = &job.options;
    let grows =
        options.writes && !options.reads && !options.overwrite && !options.trims && !options.random;
    let calls = options.engine.does_io() && !options.engine.is_mapped();
    if !grows || !calls || options.create_only || job.file_count() > 1 || options.loops > 1 {
        return Err(job.wrong(
            "fill_device=1 needs one file that is written once from its start (rw=write, no mmap or null); change the job, or give size",
        ));
    }
    Ok(())
}

fn check_verify(job: &Job, warnings: &mut Vec<String>) -> Result<(), FioError> {
    let options = &job.options;
    if !options.pattern.is_empty() && !options.buffer_pattern.is_empty() {
        return Err(job.wrong("verify_pattern and buffer_pattern are both given; leave one out"));
    }
    let Some(method) = options.verify else { return Ok(()) };
    if !options.engine.does_io() {
        warnings.push(format!(
            "{}: verify with ioengine=null stores no data, so nothing is verified (fio does not warn)",
            job.shown()
        ));
        return Ok(());
    }
    if options.verify_dump {
        warnings.push(format!(
            "{}: verify_dump=1: bad blocks are reported, and not written to files (fio writes what was read and what was expected)",
            job.shown()
        ));
    }
    if options.state_asked && job.is_threaded() {
        return Err(job
            .wrong("verify_state_save with threads: their progress is not one number; use psync, libaio or io_uring"));
    }
    if matches!(method, Method::Pattern | Method::PatternHeader) && options.pattern.is_empty() {
        return Err(
            job.wrong("verify=pattern without verify_pattern; write verify_pattern=0xdeadbeef")
        );
    }
    check_overlaps(job)?;
    let (request, min) = (job.min_request_bytes(), method.min_bytes());
    let block = options.verify_interval.map_or(request, |bytes| u64::from(bytes).min(request));
    if block < min {
        return Err(job.wrong(format!(
            "verify: a block of {} has no room for its header; use {min} B or more",
            show_size(block)
        )));
    }
    if request % block != 0 {
        warnings.push(format!(
            "{}: verify_interval={block} does not divide requests of {request} B: each has one header (fio does not warn)",
            job.shown()
        ));
    }
    let (header, at) = (method.header_bytes() as u64, u64::from(options.verify_offset));
    if at > 0 && header > 0 && (at < header || at + header > block) {
        return Err(job.wrong(format!(
            "verify_offset={at}: a header of {header} B would overlap its usual place or leave the block of {block} B; give {header} to {}",
            block.saturating_sub(header)
        )));
    }
    Ok(())
}

fn check_overlaps(job: &Job) -> Result<(), FioError> {
    let options = &job.options;
    if job.overlaps() && options.writes && job.is_threaded() {
        return Err(job.wrong(
            "verify with requests that overlap (norandommap with bsrange or bssplit, blockalign) and threads: the order of overlapping writes is unknown; use psync, libaio or io_uring",
        ));
    }
    if job.keeps_writes() && options.state_load {
        return Err(job.wrong(
            "verify_state_load with requests of several sizes: the writes before the stop are not known; leave it out, or give one bs",
        ));
    }
    Ok(())
}

fn check_order(job: &Job, warnings: &mut Vec<String>) -> Result<(), FioError> {
    let options = &job.options;
    let simple = job.sizes().is_none() && job.file_count() == 1 && options.align_bytes.is_none();
    let in_turn = job.file_count() == 1 || options.service == FileService::RoundRobin;
    if let Some(open) = job.open_files()
        && (!in_turn || job.has_own_places() || (!options.random && job.sizes().is_some()))
    {
        return Err(job.wrong(format!(
            "openfiles={open} needs files that take turns (roundrobin), one bs, and no zonemode or percentage_random; write openfiles=1, or leave it out"
        )));
    }
    let back = options.back_bytes;
    if back > 0
        && (!simple || !options.offset.is_nothing() || !options.offset_increment.is_nothing())
    {
        return Err(job.wrong(
            "a negative value after the colon of rw needs one file from its beginning and one bs; give each file a job of its own, without offset",
        ));
    }
    if back > 0 && back < job.request_bytes() {
        return Err(job.wrong(format!(
            "rw={}:-{}: requests of {} would go beyond the end of the file; go back by at least one request",
            options.mode,
            show_size(back),
            show_size(job.request_bytes())
        )));
    }
    if options.service_run > 1 && options.random && job.file_count() > 1 && !job.spreads() {
        warnings.push(format!(
            "{}: file_service_type with a number: these random requests change the file one by one",
            job.shown()
        ));
    }
    if options.hole_bytes > 0 && (job.sizes().is_some() || !in_turn) && !job.has_own_places() {
        return Err(job.wrong(
            "the value after the colon of rw of a mix needs one bs, and files that take turns (roundrobin); give each file a job of its own",
        ));
    }
    check_places(job, simple)?;
    let several = job.sizes().is_some() && (job.is_threaded() || options.loops > 1);
    if options.number_ios.is_some() && several {
        return Err(job.wrong(
            "number_ios with requests of several sizes, and loops or threads; leave one out",
        ));
    }
    let all_random = !options.random || options.random_percent == [100; 2];
    if options.blocks_by_order && !all_random {
        return Err(job.wrong(
            "bs_is_seq_rand with percentage_random: each request would have the size of its order; leave one out",
        ));
    }
    if !all_random && options.run > 1 {
        return Err(job
            .wrong("percentage_random with a value after the colon of rw; leave one of them out"));
    }
    if options.serialize_overlap
        && job.effective_depth() > 1
        && (!simple
            || (options.random && (options.no_random_map || options.run > 1 || !all_random)))
    {
        return Err(job.wrong(
            "serialize_overlap=1: only requests that cannot overlap are served; use iodepth=1, or one bs without norandommap",
        ));
    }
    Ok(())
}

fn check_places(job: &Job, simple: bool) -> Result<(), FioError> {
    let options = &job.options;
    if job.has_own_places() {
        check_own_places(job)?;
    }
    if options.strides.are_on() {
        let size = options.strides.size;
        let uniform =
            options.distribution == Distribution::Uniform && options.random_percent == [100; 2];
        let served = if options.random {
            uniform && options.run == 1
        } else {
            options.hole_bytes == 0 && options.back_bytes == 0
        };
        if !served || !(simple || job.has_own_places()) {
            return Err(job.wrong(
                "zonemode=strided needs one bs, and places that are all alike or in order; leave out the rest, or zonemode",
            ));
        }
        let range = options.strides.range.max(if options.random { 0 } else { size });
        if options.random && !range.is_multiple_of(job.request_bytes()) {
            return Err(job.wrong(format!(
                "zonerange={range}: random places in it are whole requests of {} B; give a multiple",
                job.request_bytes()
            )));
        }
        if size == 0 || !size.is_multiple_of(job.request_bytes()) {
            return Err(job.wrong(format!(
                "zonesize={size}: a zone holds whole requests of {} B; give a multiple",
                job.request_bytes()
            )));
        }
    }
    let zones = matches!(options.distribution, Distribution::ManyZones(_)) && options.random;
    if zones && (job.file_count() > 1 || options.run > 1 || options.random_percent != [100; 2]) {
        return Err(job.wrong(
            "random_distribution with several zones needs one file, and all requests in random places; give each file a job of its own",
        ));
    }
    Ok(())
}

fn check_own_places(job: &Job) -> Result<(), FioError> {
    let options = &job.options;
    let runs = options.random && options.run > 1;
    let what = match () {
        () if options.strides.are_on() => "zonemode",
        () if runs => "a value after the colon of rw",
        () => "percentage_random",
    };
    let simple = job.sizes().is_none() && job.file_count() == 1;
    let plain = !options.strides.are_on() && job.varies_in_order();
    let several_sizes = job.sizes().is_some() && !runs || options.align_bytes.is_some();
    let other_order = !runs && !plain && (options.hole_bytes > 0 || options.back_bytes > 0);
    let zones =
        matches!(options.distribution, Distribution::Zones { .. } | Distribution::ManyZones(_));
    let other = options.distribution != Distribution::Uniform && options.strides.are_on();
    let unserved = [
        ("several sizes or blockalign", several_sizes && !plain),
        ("a value after the colon of rw", other_order),
        ("another random_distribution", other || (zones && !(runs && simple))),
    ];
    match unserved.iter().find(|(_, given)| *given) {
        Some((with, _)) => Err(job.wrong(format!(
            "{what} of several files, sizes or directions with {with}; leave one out, or give each file a job of its own"
        ))),
        None => Ok(()),
    }
}

fn check_engine(job: &Job, warnings: &mut Vec<String>) -> Result<(), FioError> {
    let options = &job.options;
    let (engine, depth) = (&options.engine_name, options.depth);
    if depth > 1 && job.effective_depth() == 1 {
        warnings.push(format!(
            "{}: iodepth={depth} with ioengine={engine}: its calls block, so one request is outstanding at a time (fio does not warn); use libaio or io_uring, or numjobs={depth}",
            job.shown()
        ));
    }
    if !options.direct && options.engine.is_async() && !options.engine.queues_buffered() {
        warnings.push(format!(
            "{}: ioengine={engine} without direct=1: Linux serves such requests during submission, one after the other (fio does not warn); use direct=1 or io_uring",
            job.shown()
        ));
    }
    if let Some(max) =
        options.batch_complete_max.filter(|&max| max > 0 && max < job.effective_depth())
    {
        warnings.push(format!(
            "{}: iodepth_batch_complete_max={max} with iodepth={depth}: all completions that are there are taken at once, even more than {max}",
            job.shown()
        ));
    }
    check_offload(job)?;
    check_file_operation(job, warnings)?;
    check_priorities(job)?;
    if options.atomic {
        warnings.push(format!(
            "{}: atomic=1: plain direct requests, as fio 3.33 makes them (it opens with a flag that Linux ignores): nothing is written with RWF_ATOMIC, and nothing waits for stable storage; sync=dsync would",
            job.shown()
        ));
    }
    if job.is_threaded() && (options.batch.unwrap_or(1) > 1 || options.batch_complete > 1) {
        return Err(job.wrong(
            "iodepth_batch with ioengine=posixaio or io_submit_mode=offload: their threads submit one request each; use libaio or io_uring",
        ));
    }
    if options.engine.has_workers() {
        warnings.push(format!(
            "{}: ioengine=posixaio: {depth} threads with a blocking call each; the C library, which fio uses, has one thread a file and so a depth of 1 at the device",
            job.shown()
        ));
    }
    if options.sync_every.range > 0 && options.filenames.iter().any(|name| is_twin(Path::new(name)))
    {
        return Err(job.wrong(
            "sync_file_range on a simulated machine: its kernel does not write back parts of files; use fsync or fdatasync",
        ));
    }
    if job.is_threaded() && options.sync_every.any() {
        return Err(job.wrong(
            "fsync, fdatasync and sync_file_range with ioengine=posixaio or io_submit_mode=offload are not supported; use psync, libaio or io_uring",
        ));
    }
    if options.engine.is_mapped() {
        if options.direct {
            warnings.push(format!(
                "{}: direct=1 with ioengine=mmap: mapped memory is the page cache, so it has no effect (fio does not warn)",
                job.shown()
            ));
        }
        if options.sync != SyncMode::None {
            return Err(
                job.wrong("sync with ioengine=mmap: stores to memory are never synchronous; use fsync=1, or psync")
            );
        }
    }
    Ok(())
}

fn check_priorities(job: &Job) -> Result<(), FioError> {
    let (priorities, engine) = (&job.options.cmdprio, job.options.engine);
    if priorities.is_given_twice() {
        return Err(
            job.wrong("cmdprio_percentage and cmdprio_bssplit are both given; leave one out")
        );
    }
    if priorities.is_on() && !engine.takes_priorities() {
        return Err(job.wrong(format!(
            "cmdprio_percentage or cmdprio_bssplit with ioengine={}: its requests have the priority of their thread; use libaio or io_uring",
            job.options.engine_name
        )));
    }
    Ok(())
}

fn check_file_operation(job: &Job, warnings: &mut Vec<String>) -> Result<(), FioError> {
    let options = &job.options;
    let Some(operation) = options.file_operation else { return Ok(()) };
    let engine = &options.engine_name;
    let refused = [
        ("verify", options.verify.is_some()),
        ("fsync, fdatasync or end_fsync", options.sync_every.any() || options.end_fsync),
        ("rw=trim", options.trims),
        ("read_iolog", options.trace.is_some()),
        ("fill_device", options.fills),
        ("bsrange or bssplit", job.sizes().is_some()),
        ("zonemode", options.strides.are_on()),
        ("io_size", options.io_size.is_some()),
        ("create_only", options.create_only),
    ];
    if let Some((what, _)) = refused.iter().find(|(_, given)| *given) {
        return Err(
            job.wrong(format!("{what} with ioengine={engine}: it transfers no data; leave it out"))
        );
    }
    if operation.works_once() && (options.loops > 1 || options.time_based) {
        return Err(job.wrong(format!(
            "ioengine={engine} with loops or time_based: it works only once for each name (fio fails in the second pass); leave them out",
        )));
    }
    let size = options.file_bytes.map(|[low, _]| low).or(match options.size {
        Some(Amount::Bytes(bytes)) => Some(bytes / u64::from(job.file_count()).max(1)),
        _ => None,
    });
    if size.is_some_and(|size| size > job.request_bytes()) {
        warnings.push(format!(
            "{}: ioengine={engine}: each file counts as one request of {} (fio counts every block of the file, though it makes one call)",
            job.shown(),
            show_size(job.request_bytes())
        ));
    }
    Ok(())
}

fn check_offload(job: &Job) -> Result<(), FioError> {
    let options = &job.options;
    let served = !options.engine.does_io()
        || (options.engine.max_depth() == 1 && !options.engine.is_mapped());
    if options.offload && !served {
        return Err(job.wrong(format!(
            "io_submit_mode=offload with ioengine={}: it queues its requests itself; leave the option out, or use psync",
            options.engine_name
        )));
    }
    Ok(())
}

fn check_time(job: &Job, warnings: &mut Vec<String>) -> Result<(), FioError> {
    let options = &job.options;
    if options.time_based && options.runtime_ns == 0 {
        warnings.push(format!(
            "{}: time_based without a runtime: the job ends with its size, as in fio; write runtime=60",
            job.shown()
        ));
    }
    if options.rate_bytes.iter().any(Option::is_some)
        && options.rate_iops.iter().any(Option::is_some)
    {
        return Err(job.wrong("rate and rate_iops are both given; leave one out"));
    }
    check_steady(job)?;
    check_latency(job)?;
    if job.rates().into_iter().flatten().sum::<f64>() > workload::MAX_RATE_IOPS {
        return Err(job.wrong("the rate exceeds 10^9 requests per second; lower rate or rate_iops"));
    }
    Ok(())
}

fn check_latency(job: &Job) -> Result<(), FioError> {
    let goal = &job.options.latency;
    if goal.searches() && goal.window_ns == 0 {
        return Err(
            job.wrong("latency_target without latency_window: no time to test a depth; write latency_window=1s")
        );
    }
    if goal.searches() && job.is_threaded() {
        return Err(job.wrong(
            "latency_target with ioengine=posixaio or io_submit_mode=offload, whose depth is threads, is not supported; use libaio or io_uring",
        ));
    }
    Ok(())
}

fn check_steady(job: &Job) -> Result<(), FioError> {
    let steady = &job.options.steady;
    if steady.given && !steady.watches() {
        return Err(job.wrong(
            "steadystate has no effect without steadystate_duration; write steadystate_duration=10",
        ));
    }
    if steady.watches() && !whole_seconds(steady.duration_ns) {
        return Err(job.wrong(
            "steadystate_duration: rates are collected once a second; give 2 or more whole seconds",
        ));
    }
    Ok(())
}
