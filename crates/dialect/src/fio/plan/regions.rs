//! Parts of files that clones use.

use super::arrange::Found;
use super::jobs::Job;
use super::tausworthe::{DEFAULT_SEED, Purpose, Tausworthe};
use crate::fio::options::error::FioError;
use crate::fio::options::kinds::{Distribution, FileService};
use crate::fio::options::value::Amount;
use machine::units::show_size;
use std::path::Path;

/// Draws sizes from a range of `filesize`.
pub(super) struct Sizes {
    range: Option<[u64; 2]>,
    unit: u64,
    draws: Tausworthe,
}

impl Sizes {
    pub(super) fn new(job: &Job, clone: u32) -> Sizes {
        let seed = job.options.seed.unwrap_or(DEFAULT_SEED);
        Sizes {
            range: job.options.file_bytes,
            unit: job.min_block_bytes(),
            draws: Tausworthe::new(seed, clone, Purpose::FileSize),
        }
    }

    /// As in fio, a size within the range stays.
    fn next(&mut self, there: Option<u64>) -> Option<u64> {
        let [low, high] = self.range?;
        match there.filter(|bytes| (low..=high).contains(bytes)) {
            Some(bytes) => Some(bytes),
            None if low == high => Some(low),
            None => Some((low + self.draws.below(high - low)) / self.unit * self.unit),
        }
    }
}

/// Bytes moved with `hole` skipped after each `run`.
pub(super) fn without_holes(len: u64, request: u64, (run, hole): (u64, u64)) -> u64 {
    let stride = run.saturating_add(hole);
    let moved = len / stride * run + (len % stride).min(run);
    if len < request { len } else { moved / request * request }
}

/// Bytes per pass and passes for `asked` bytes (io_size). As in fio, if another pass or reading
/// back follows, whole passes are made until less than a request is left, but at least `loops`.
/// Bytes read back count too.
fn passes(job: &Job, asked: u64, pass: u64) -> (u64, u64) {
    let (options, request) = (&job.options, job.min_request_bytes());
    let reads_back = options.verify.is_some() && options.do_verify && !options.reads;
    let whole = (options.loops > 1 || reads_back) && job.passes_end();
    if !whole || pass == 0 || asked <= pass {
        return (asked, options.loops);
    }
    let counted = if reads_back { pass.saturating_mul(2) } else { pass };
    (pass, (asked - (request - 1)).div_ceil(counted).max(options.loops))
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    start: u64,
    len: u64,
    /// May be beyond the last request.
    pub(super) end: u64,
    /// To the existing file's end.
    zoned_len: u64,
    /// The rest is too short for a request.
    len_with_rest: u64,
    /// Of `io_size` in percent.
    share_bytes: u64,
    /// The whole file.
    file_bytes: u64,
}

pub(super) fn region(
    job: &Job,
    clone: u32,
    count: u64,
    path: &Path,
    (found, may_destroy): (Found, bool),
    sizes: &mut Sizes,
) -> Result<Region, FioError> {
    let lengthens = may_destroy && matches!(found, Found::File(_));
    let options = &job.options;
    let shown = path.display();
    let there = match found {
        Found::File(bytes) | Found::Device(bytes) => Some(bytes),
        Found::Made(bytes) if bytes > 0 => Some(bytes),
        _ => None,
    };
    // Files that alternate hold whole requests, of the smallest size if there are several.
    let unit = if job.sizes().is_none() { job.request_bytes() } else { job.min_request_bytes() };
    let share = |bytes: u64| bytes / count;
    let drawn = sizes.next(there);
    let whole = match (drawn.or(there), options.size) {
        (Some(bytes), _) => bytes,
        (None, Some(Amount::Bytes(bytes))) => share(bytes),
        (None, _) => {
            let why = if found == Found::Endless {
                "has no size of its own, so one"
            } else {
                "does not exist yet, so its size"
            };
            return Err(job.wrong(format!("size: {shown} {why} is needed; write size=1g")));
        }
    };
    let overflow =
        || job.wrong("offset, offset_increment and numjobs go beyond all sizes; lower them");
    // As in fio, an offset is a percentage of the file that is there: a new one has no size yet.
    let present = there.unwrap_or(0);
    let appends = options.append && !matches!(found, Found::Device(_));
    if appends
        && present > 0
        && (drawn.is_some() || !matches!(options.size, Some(Amount::Bytes(_))))
    {
        return Err(job.wrong(format!(
            "file_append=1: {shown} has {}, and only size says how many bytes follow; write size=64k, without filesize",
            show_size(present)
        )));
    }
    let step =
        options.offset_increment.of(present).checked_mul(u64::from(clone)).ok_or_else(overflow)?;
    let start = options.offset.of(present).checked_add(step).ok_or_else(overflow)?;
    // As in fio, a percentage begins at the next block and ends with the last whole one.
    let block = job.min_request_bytes().max(1);
    let aligned = [options.offset_align_bytes, block].into_iter().find(|&bytes| bytes > 0);
    let start = match options.offset {
        _ if appends => present,
        Amount::Percent(1..) => {
            start.checked_next_multiple_of(aligned.unwrap_or(1)).ok_or_else(overflow)?
        }
        _ => start,
    };
    let rest = |whole: u64| {
        whole.checked_sub(start).filter(|&rest| rest > 0).ok_or_else(|| {
            job.wrong(format!(
                "offset: clone {clone} begins at {}, and {shown} ends at {}; lower offset or offset_increment",
                show_size(start),
                show_size(whole)
            ))
        })
    };
    let len = match (drawn, options.size) {
        (None, Some(Amount::Bytes(bytes))) => match found {
            // As in fio, a device may be smaller.
            Found::Device(there) => share(bytes).min(rest(there)?),
            _ => share(bytes),
        },
        (_, Some(part @ Amount::Percent(0..100))) => {
            part.of(whole).min(rest(whole)?) / block * block
        }
        // The range of sizes may begin below a whole request.
        (Some(0), _) => 0,
        _ => rest(whole)?,
    };
    let file_len = len;
    let len = if count == 1 { len } else { len / unit * unit };
    if len == 0 && (count == 1 || drawn.is_none()) {
        return Err(job.wrong(format!(
            "size: nothing is left for {shown}; give each of the {count} files at least one request"
        )));
    }
    let end = start.checked_add(len).ok_or_else(overflow)?;
    match found {
        Found::File(bytes) | Found::Device(bytes) if end > bytes && !lengthens => {
            return Err(job.wrong(format!(
                "size: {shown} has {}, but {} of it are needed; lower size or offset, or, if its data may be lost, write --destroy-data={shown} (fio overwrites it without asking)",
                show_size(bytes),
                show_size(end)
            )));
        }
        _ => {}
    }
    // An existing file may end before its share would.
    let end = match found {
        Found::File(bytes) | Found::Device(bytes) => end.max(bytes.min(start + file_len)),
        _ => end.max(start.saturating_add(file_len)),
    };
    // As in fio, zones go on to the end of the file, beyond the size.
    let zoned_len = there.and_then(|there| there.checked_sub(start)).unwrap_or(0);
    let share_bytes = options.io_size.map_or(0, |part| part.of(file_len));
    let file_bytes = there.unwrap_or(0).max(start.saturating_add(file_len));
    Ok(Region { start, len, end, zoned_len, len_with_rest: file_len, share_bytes, file_bytes })
}

/// Where the requests of a pass with gaps end; `None`: they restart at the beginning. As in fio, a
/// pass ends with a request that ends with its part, or when the remainder is too short for the
/// next one. If that would begin beyond the file, the cursor restarts.
pub(super) fn end_with_holes(
    len: u64,
    (request, hole): (u64, u64),
    file_bytes: u64,
) -> Option<u64> {
    let (room, stride) = (len.checked_sub(request)?, request + hole);
    let end = (room / stride + 1) * stride;
    (room.is_multiple_of(stride) || end < file_bytes).then_some(end)
}

pub(super) struct Work {
    pub(super) start: u64,
    pub(super) lengths: Vec<u64>,
    pub(super) file_bytes: u64,
    pub(super) pass_bytes: u64,
    pub(super) passes: u64,
    pub(super) has_rest: bool,
}

/// What ends a pass.
enum End {
    /// No whole request is left, after these bytes.
    Full(u64),
    /// The size: requests that reach the end restart at the beginning.
    Size,
    /// Places of its own in each file or direction: `FileTurns` knows their ends.
    Places,
}

impl End {
    fn new(job: &Job, regions: &[Region], all: u64) -> End {
        let (options, request) = (&job.options, job.min_request_bytes());
        let Region { len_with_rest, file_bytes, .. } = regions[0];
        let one = regions.len() == 1;
        let holes = options.hole_bytes;
        if holes == 0 {
            // As in fio, requests that find room go on until the size is reached.
            let stays = options.run_stays();
            let goes_on = (one || job.mixes_in_order() || stays)
                && (options.run == 1 || stays)
                && !options.strides.are_on()
                && !job.passes_end();
            return if goes_on { End::Size } else { End::Full(all / request * request) };
        }
        if job.has_own_places() || (options.reads && options.writes && one) {
            return End::Places;
        }
        match end_with_holes(len_with_rest, (request, holes), file_bytes) {
            Some(_) => {
                let moved = without_holes(len_with_rest, request, (request, holes));
                End::Full(moved.saturating_mul(regions.len() as u64))
            }
            None => End::Size,
        }
    }
}

impl Work {
    pub(super) fn new(job: &Job, regions: &[Region]) -> Result<Work, FioError> {
        let options = &job.options;
        check_alike(job, regions)?;
        let overflow =
            || job.wrong("offset, offset_increment and numjobs go beyond all sizes; lower them");
        let sum = |of: fn(&Region) -> u64| {
            regions.iter().map(of).try_fold(0u64, u64::checked_add).ok_or_else(overflow)
        };
        let all = sum(|region| region.len)?;
        if all == 0 {
            return Err(job.wrong(
                "filesize: none of the files has room for a request; make them larger, or bs smaller",
            ));
        }
        // As in fio, with several sizes the last requests shrink to fit.
        let request = job.min_request_bytes();
        let holes = options.hole_bytes;
        let size = match options.size {
            Some(Amount::Bytes(bytes)) => bytes,
            _ => all,
        };
        let asked = match (options.io_size, options.size) {
            (Some(Amount::Bytes(bytes)), _) => bytes,
            (Some(_), _) => sum(|region| region.share_bytes)?.min(size),
            // As in fio, zones begin again at the end of a file, until the size is reached.
            (None, Some(Amount::Bytes(bytes)))
                if job.has_own_places() && options.strides.are_on() =>
            {
                bytes
            }
            (None, Some(Amount::Bytes(bytes))) => bytes.min(all),
            (None, _) => all,
        };
        let whole = |bytes: u64| match bytes / request * request {
            0 => bytes,
            whole => whole,
        };
        let up = |bytes: u64| bytes.checked_next_multiple_of(request).ok_or_else(overflow);
        let end = End::new(job, regions, all);
        let room = if let End::Full(pass) = end { pass } else { all };
        let sums_up = options.loops > 1 && options.verify.is_none() && asked <= room;
        let (each, passes) = match (end, options.io_size) {
            // As in fio, io_size of all passes is rounded up once.
            (End::Full(_) | End::Size, Some(_)) if sums_up => {
                (up(asked.checked_mul(options.loops).ok_or_else(overflow)?)?, 1)
            }
            // As in fio, io_size is rounded up to whole requests.
            (End::Full(pass), Some(_)) => passes(job, up(asked)?, pass),
            (_, Some(_)) => (up(asked)?, options.loops),
            (End::Size, None) if asked >= request && options.number_ios.is_none() => {
                let asked = match () {
                    () if holes > 0 || options.run_stays() => {
                        size.min(sum(|region| region.len_with_rest)?)
                    }
                    () if regions.len() > 1 => size.max(sum(|region| region.len_with_rest)?),
                    () => asked,
                };
                let loops = if options.verify.is_some() { 1 } else { options.loops };
                (up(asked.checked_mul(loops).ok_or_else(overflow)?)?, options.loops / loops)
            }
            // Gaps between requests are not transferred.
            (End::Full(pass), None) if holes > 0 => (whole(asked.min(pass)), options.loops),
            // As in fio, the last of the requests that still find room goes beyond the size.
            (_, None) if options.back_bytes > 0 => (up(asked)?, options.loops),
            (_, None) if asked < all => (whole(up(asked)?.min(all)), options.loops),
            (_, None) => (whole(asked), options.loops),
        };
        // With several sizes, the run counts them.
        let max = options.number_ios.filter(|_| job.sizes().is_none());
        let each = max.map_or(each, |max| each.min(max.saturating_mul(request)));
        each.checked_mul(passes).ok_or_else(overflow)?;
        let length = |region: &Region| match () {
            () if options.strides.are_on() => region.zoned_len.max(region.len),
            () if holes > 0 => region.len_with_rest,
            () => region.len,
        };
        let lengths = regions.iter().map(length).collect();
        let bounded = options.io_size.is_none() && options.number_ios.is_none() && holes == 0;
        // Beyond it, the size of the file ends the pass.
        let rests = request.saturating_mul(regions.len() as u64);
        let has_rest = bounded && (1..rests).contains(&size.saturating_sub(each));
        let file_bytes = regions.iter().map(|region| region.file_bytes).max().unwrap_or(0);
        let start = regions[0].start;
        Ok(Work { start, lengths, file_bytes, pass_bytes: each, passes, has_rest })
    }
}

/// Refuses parts of files that cannot take turns.
fn check_alike(job: &Job, regions: &[Region]) -> Result<(), FioError> {
    let Region { start, len, .. } = regions[0];
    if regions.iter().any(|other| other.start != start) {
        return Err(job.wrong(
            "offset: its files differ in size, so a percentage of them, or file_append=1, begins elsewhere in each; give it in bytes, so that they take turns from the same offset",
        ));
    }
    let differ = regions.iter().any(|other| other.len != len);
    if let Some(hindrance) = hindrance(job).filter(|_| differ) {
        return Err(job.wrong(format!(
            "{hindrance}: its files differ in size, which is not supported with it; give filesize one value, or size",
        )));
    }
    if regions.len() > 1 && job.sizes().is_none() && !start.is_multiple_of(job.request_bytes()) {
        return Err(job.wrong(
            "offset: files that take turns begin at a whole request; give a multiple of bs",
        ));
    }
    Ok(())
}

/// The option that forbids differing sizes.
fn hindrance(job: &Job) -> Option<&'static str> {
    let options = &job.options;
    let spreads = job.spreads() || job.has_own_places();
    match () {
        () if options.hole_bytes > 0 || options.back_bytes > 0 || options.run > 1 => Some("rw"),
        () if options.engine.is_mapped() => Some("ioengine"),
        () if options.trace.is_some() => Some("read_iolog"),
        () if options.random && options.distribution != Distribution::Uniform && !spreads => {
            Some("random_distribution")
        }
        () if options.random && options.service == FileService::Sequential && !spreads => {
            Some("file_service_type")
        }
        () if !options.random && job.sizes().is_some() && !spreads => Some("bs"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::{Command, Plan};

    /// KiB of a pass, passes, and whether a rest follows.
    fn work(words: &str) -> (u64, u64, bool) {
        let words: Vec<String> =
            format!("--name=a --bs=4k {words}").split(' ').map(str::to_owned).collect();
        let command = Command::parse(&words).unwrap();
        let plan = Plan::new(&command.sections, &[]).unwrap();
        let job = plan.jobs().next().unwrap();
        let (count, path, mut sizes) =
            (u64::from(job.options.files), Path::new("file"), Sizes::new(job, 0));
        let new_file = (Found::Nothing, false);
        let regions: Vec<Region> = (0..count)
            .map(|_| region(job, 0, count, path, new_file, &mut sizes).unwrap())
            .collect();
        let Work { pass_bytes, passes, has_rest, .. } = Work::new(job, &regions).unwrap();
        (pass_bytes >> 10, passes, has_rest)
    }

    /// As fio 3.33 and 3.42 count them.
    #[test]
    fn passes_end_as_in_fio() {
        for (words, expected) in [
            ("--rw=read --size=64k", (64, 1, false)),
            ("--rw=read --size=70k", (68, 1, true)),
            ("--rw=read --size=70k --nrfiles=2", (64, 1, true)),
            ("--rw=read --size=70k --loops=2", (68, 2, true)),
            ("--rw=read --size=64k --io_size=130k", (132, 1, false)),
            ("--rw=read --size=64k --io_size=50%", (32, 1, false)),
            ("--rw=read --size=64k --io_size=200k --loops=2", (64, 4, false)),
            ("--rw=read --size=100000 --io_size=12345 --loops=3", (40, 1, false)),
            ("--rw=randread --size=64k --io_size=50k --loops=3", (152, 1, false)),
            ("--rw=write:4k --size=64k --io_size=64k --loops=2", (128, 1, false)),
            ("--rw=write:4k --size=64k --io_size=30k --loops=3", (92, 1, false)),
            ("--rw=randwrite --size=64k --io_size=200k --verify=md5", (64, 2, false)),
            ("--rw=randread --size=70k --norandommap", (72, 1, false)),
            ("--rw=randwrite --size=70k --norandommap --loops=2 --verify=md5", (72, 2, false)),
            ("--rw=write:4k --size=64k", (64, 1, false)),
            ("--rw=write:4k --size=65k", (32, 1, false)),
            ("--rw=read --size=64k --number_ios=3", (12, 1, false)),
        ] {
            assert_eq!(work(words), expected, "{words}");
        }
    }
}
