//! The block layer's trace points (Documentation/trace/ftrace.rst).

use super::facts::{self, Roots};
use super::trace_instance::TraceInstance;
use machine::{BlockTimes, Nanos};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};

const EVENTS: [&str; 3] = ["block_bio_queue", "block_rq_issue", "block_rq_complete"];

const FILTER: &str = "dev == ";

/// Per CPU: about 60,000 events.
const BUFFER_KIB: u32 = 4096;

type Number = (u32, u32);

pub(crate) struct BlockTrace {
    instance: TraceInstance,
    disks: BTreeMap<Number, Number>,
    /// The calling thread's name, which its threads share.
    own: String,
}

impl BlockTrace {
    pub(crate) fn start(roots: &Roots, devices: &[String]) -> io::Result<BlockTrace> {
        let disks = disks(roots, devices);
        if disks.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let filter: Vec<String> = disks
            .keys()
            .map(|&(major, minor)| format!("{FILTER}{}", u64::from(major) << 20 | u64::from(minor)))
            .collect();
        let own = fs::read_to_string("/proc/thread-self/comm")?.trim_end().to_owned();
        let instance = TraceInstance::new(BUFFER_KIB)?;
        for event in EVENTS {
            instance.set(&format!("events/block/{event}/filter"), &filter.join(" || "))?;
            instance.set(&format!("events/block/{event}/enable"), "1")?;
        }
        Ok(BlockTrace { instance, disks, own })
    }

    /// Own requests, then all; `at` converts kernel time.
    pub(crate) fn end(self, at: impl Fn(Nanos) -> Nanos) -> io::Result<Vec<BlockTimes>> {
        self.instance.set("tracing_on", "0")?;
        let trace = BufReader::new(File::open(self.instance.path("trace"))?);
        Ok(times(trace, &self.disks, &self.own, at)?.unwrap_or_default())
    }
}

/// The kernel traces a request first under its partition, then the disk.
fn disks(roots: &Roots, devices: &[String]) -> BTreeMap<Number, Number> {
    let number =
        |name: &str| number(&facts::text(facts::device_directory(roots, name).join("dev"))?, ':');
    let mut disks = BTreeMap::new();
    for name in devices {
        let disk = facts::disk_of_partition(roots, name).and_then(|disk| number(&disk));
        let Some(own) = number(name) else { continue };
        let disk = disk.unwrap_or(own);
        disks.insert(own, disk);
        disks.insert(disk, disk);
    }
    disks
}

fn number(text: &str, between: char) -> Option<Number> {
    let (major, minor) = text.split_once(between)?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Queued,
    Issued,
    Completed,
}

#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    at: Nanos,
    event: Event,
    device: Number,
    sector: u64,
    sectors: u64,
    thread: &'a str,
}

/// Parses `  dd-27304   [000] ..... 26196.625243: block_bio_queue: 7,0 RS 0 + 2048 [dd]`.
fn parse(line: &str) -> Option<Line<'_>> {
    let (head, rest) = line.split_once(": block_")?;
    let (seconds, fraction) = head.rsplit(' ').next()?.split_once('.')?;
    let at =
        seconds.parse::<Nanos>().ok()? * 1_000_000_000 + fraction.parse::<Nanos>().ok()? * 1000;
    let (name, fields) = rest.split_once(": ")?;
    let event = match name {
        "bio_queue" => Event::Queued,
        "rq_issue" => Event::Issued,
        "rq_complete" => Event::Completed,
        _ => return None,
    };
    let (before, after) = fields.split_once(" + ")?;
    let mut words = before.split(' ');
    let device = number(words.next()?, ',')?;
    let moves = words.next()?;
    if moves.contains('D') || !moves.contains(['R', 'W']) {
        return None;
    }
    let sector = words.next_back()?.parse().ok()?;
    let sectors = after.split(' ').next()?.parse().ok().filter(|&sectors| sectors > 0)?;
    let thread = after.rsplit_once('[').map_or("", |(_, thread)| thread.trim_end_matches(']'));
    Some(Line { at, event, device, sector, sectors, thread })
}

struct Bio {
    at: Nanos,
    end: u64,
    left: u64,
    issued: Option<Nanos>,
    own: bool,
}

fn times(
    trace: impl BufRead,
    disks: &BTreeMap<Number, Number>,
    own: &str,
    at: impl Fn(Nanos) -> Nanos,
) -> io::Result<Option<Vec<BlockTimes>>> {
    let mut under_way: BTreeMap<(Number, u64), Bio> = BTreeMap::new();
    let (mut own_sum, mut all) = (BlockTimes::default(), BlockTimes::default());
    // Line by line: a trace may exceed all the other memory of this program.
    for line in trace.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if lost(&line) {
            return Ok(None);
        }
        let Some(line) = parse(&line) else { continue };
        let Some(&disk) = disks.get(&line.device) else { continue };
        let end = line.sector + line.sectors;
        if line.event == Event::Queued {
            let own = line.thread == own || line.thread.starts_with("iou-wrk-");
            let bio = Bio { at: line.at, end, left: line.sectors, issued: None, own };
            under_way.insert((disk, line.sector), bio);
            continue;
        }
        let first = under_way
            .range((disk, 0)..=(disk, line.sector))
            .next_back()
            .map_or(line.sector, |(key, _)| key.1);
        let mut done = Vec::new();
        for (&key, bio) in under_way.range_mut((disk, first)..(disk, end)) {
            let shared = bio.end.min(end).saturating_sub(key.1.max(line.sector));
            if shared == 0 {
                continue;
            }
            if line.event == Event::Issued {
                bio.issued.get_or_insert(line.at);
            } else {
                bio.left = bio.left.saturating_sub(shared);
                done.extend((bio.left == 0).then_some(key));
            }
        }
        for bio in done.iter().filter_map(|key| under_way.remove(key)) {
            let Some(issued) = bio.issued else { continue };
            for sum in [Some(&mut all), bio.own.then_some(&mut own_sum)].into_iter().flatten() {
                sum.bios += 1;
                sum.queued_at_sum = sum.queued_at_sum.wrapping_add(at(bio.at));
                sum.queue_ns += issued.saturating_sub(bio.at);
                sum.device_ns += line.at.saturating_sub(issued);
            }
        }
    }
    Ok(Some(vec![own_sum, all]))
}

/// Parses `# entries-in-buffer/entries-written: 10/12 #P:2`: unequal if events were overwritten.
fn lost(line: &str) -> bool {
    let counts = line.strip_prefix("# entries-in-buffer/entries-written: ");
    let counts = counts.and_then(|counts| counts.split_whitespace().next()?.split_once('/'));
    counts.is_some_and(|(kept, written)| kept != written)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 8/8   #P:2\n#\n";

    fn seen(lines: &str) -> Vec<BlockTimes> {
        let disks = BTreeMap::from([((7, 0), (7, 0)), ((259, 1), (259, 0)), ((259, 0), (259, 0))]);
        times(format!("{HEAD}{lines}").as_bytes(), &disks, "halfpower", |at| at).unwrap().unwrap()
    }

    #[test]
    fn lines_of_a_recorded_trace_are_understood() {
        let line = "     ksoftirqd/1-22      [001] ..s.. 26196.626934: block_rq_complete: 7,0 RS () 0 + 1096 be,0,4 [0]";
        let parsed = parse(line).unwrap();
        assert_eq!((parsed.at, parsed.event), (26_196_626_934_000, Event::Completed));
        assert_eq!((parsed.device, parsed.sector, parsed.sectors), ((7, 0), 0, 1096));
        let line = "              dd-27304   [000] .N... 26196.626713: block_rq_issue: 7,0 RS 487424 () 1096 + 952 be,0,4 [dd]";
        assert_eq!(
            parse(line).map(|line| (line.event, line.sector, line.thread)),
            Some((Event::Issued, 1096, "dd"))
        );
        let flush = "  dd-1   [000] ..... 1.000000: block_rq_issue: 7,0 FF 0 () 0 + 0 be,0,4 [dd]";
        assert_eq!(parse(flush), None);
    }

    #[test]
    fn a_split_request_is_done_with_its_last_part() {
        let seen = seen(
            "  halfpower-7 [000] ..... 1.000000: block_bio_queue: 7,0 RS 0 + 2048 [halfpower]\n\
             halfpower-7 [000] ..... 1.000010: block_rq_issue: 7,0 RS 561152 () 0 + 1096 be,0,4 [halfpower]\n\
             halfpower-7 [000] ..... 1.000030: block_rq_issue: 7,0 RS 487424 () 1096 + 952 be,0,4 [halfpower]\n\
             x-22 [001] ..s.. 1.000090: block_rq_complete: 7,0 RS () 1096 + 952 be,0,4 [0]\n\
             x-22 [001] ..s.. 1.000100: block_rq_complete: 7,0 RS () 0 + 1096 be,0,4 [0]\n",
        );
        let all = BlockTimes {
            bios: 1,
            queued_at_sum: 1_000_000_000,
            queue_ns: 10_000,
            device_ns: 90_000,
        };
        assert_eq!(seen, [all, all]);
    }

    #[test]
    fn merged_requests_and_those_of_partitions_are_followed() {
        let seen = seen(
            "  halfpower-7 [000] ..... 1.000000: block_bio_queue: 259,1 WS 64 + 8 [halfpower]\n\
             halfpower-7 [000] ..... 1.000002: block_bio_queue: 259,1 WS 72 + 8 [halfpower]\n\
             halfpower-7 [000] ..... 1.000010: block_rq_issue: 259,0 WS 8192 () 64 + 16 be,0,4 [halfpower]\n\
             x-22 [001] ..s.. 1.000050: block_rq_complete: 259,0 WS () 64 + 16 be,0,4 [0]\n",
        );
        let all = BlockTimes {
            bios: 2,
            queued_at_sum: 2_000_002_000,
            queue_ns: 18_000,
            device_ns: 80_000,
        };
        assert_eq!(seen, [all, all]);
    }

    #[test]
    fn requests_of_other_programs_are_excluded() {
        let of = |sector: u64, thread: &str| {
            format!(
                "  x-7 [000] ..... 1.000000: block_bio_queue: 7,0 RS {sector} + 8 [{thread}]\n\
                 x-7 [000] ..... 1.000001: block_rq_issue: 7,0 RS 4096 () {sector} + 8 be,0,4 [x]\n\
                 x-7 [000] ..... 1.000003: block_rq_complete: 7,0 RS () {sector} + 8 be,0,4 [0]\n"
            )
        };
        let bios = |lines: &str| seen(lines).iter().map(|seen| seen.bios).collect::<Vec<_>>();
        assert_eq!(bios(&of(0, "kworker/0:1")), [0, 1]);
        assert_eq!(
            bios(&(of(0, "kworker/0:1") + &of(8, "halfpower") + &of(16, "iou-wrk-7"))),
            [2, 3]
        );
        assert_eq!(bios(""), [0, 0]);
    }

    #[test]
    fn a_trace_with_lost_events_is_discarded() {
        let disks = BTreeMap::from([((7, 0), (7, 0))]);
        let text = "# entries-in-buffer/entries-written: 8/9   #P:2\n";
        assert_eq!(times(text.as_bytes(), &disks, "halfpower", |at| at).unwrap(), None);
    }
}
