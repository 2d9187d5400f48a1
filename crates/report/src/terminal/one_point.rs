use super::{Line, Tone, render, wrap};
use crate::format::{grouped, percent, range, rate, request_times, short_count, size};
use machine::ResourceUse;
use machine::text::printable;
use machine::units::{MIB, show_capacity, show_time, significant};
use results::Results;
use results::{Achieved, LatencySummary, Numbers, Point};

const GUTTER: usize = 9;

const FAULTS: usize = 10;

struct Block {
    lines: Vec<Line>,
    room: usize,
}

impl Block {
    fn say(&mut self, name: &str, tone: Tone, text: &str) {
        for (place, line) in wrap(text, self.room).into_iter().enumerate() {
            let name = if place == 0 { name } else { "" };
            self.lines.push(vec![(Tone::Quiet, format!("{name:GUTTER$}")), (tone, line)]);
        }
    }
}

pub(super) fn block(results: &Results, point: &Point, width: usize, colour: bool) -> String {
    let mut block = Block { lines: Vec::new(), room: width - GUTTER };
    block.lines.push(vec![(Tone::Strong, printable(&point.workload.short()))]);
    block.say("target", Tone::Plain, &results.target.name);
    match &point.numbers {
        Some(numbers) => say_numbers(&mut block, point, numbers),
        None => {
            let error = point.error.as_deref().unwrap_or("it was not run");
            block.say("failed", Tone::Failed, error);
        }
    }
    if let Some(found) = &point.verification {
        let checked = show_capacity(found.checked_bytes as f64);
        match found.fault_count() {
            0 if found.checked_bytes == 0 => {
                block.say("verified", Tone::Failed, "nothing was read back")
            }
            0 => block.say(
                "verified",
                Tone::Good,
                &format!("{checked} read back: the data read is the data written"),
            ),
            count => {
                block.say("faults", Tone::Failed, &format!("{count} in {checked} read back"));
                found
                    .first_faults
                    .iter()
                    .take(FAULTS)
                    .for_each(|fault| block.say("", Tone::Failed, fault));
            }
        }
        found.unjudged().iter().for_each(|unjudged| block.say("", Tone::Plain, unjudged));
    }
    render(&block.lines, width, colour)
}

fn say_numbers(block: &mut Block, point: &Point, numbers: &Numbers) {
    say_rate(block, point, numbers);
    let all = [
        ("latency", Some(&numbers.latency_ns)),
        ("  reads", numbers.read_latency_ns.as_ref()),
        ("  writes", numbers.write_latency_ns.as_ref()),
    ];
    for (name, latency) in all {
        if let Some(latency) = latency {
            block.say(name, Tone::Plain, &percentiles(latency));
        }
    }
    if let Some(strip) = strip(&numbers.latency_ns, block.room) {
        block.say("", Tone::Quiet, &strip);
    }
    say_achieved(block, point.workload.outstanding(), &numbers.achieved);
    let cpu = &numbers.cpu_ns_per_request;
    let spread = match cpu.process_interval_95 {
        Some([low, high]) => format!(" ({})", range(&show_time(low), &show_time(high))),
        None => String::new(),
    };
    let text = format!(
        "{} a request{spread}: user {}, system {}; whole machine {}, {} processors busy",
        show_time(numbers.cpu_ns_per_request.process()),
        show_time(cpu.user),
        show_time(cpu.system),
        show_time(cpu.machine),
        significant(numbers.achieved.busy_processors, 2)
    );
    block.say("CPU", Tone::Plain, &text);
    if let (Some(parity_ns), Some(share)) =
        (numbers.achieved.parity_ns_per_mib, numbers.achieved.parity_percent)
    {
        let of_mib = MIB as f64 * numbers.iops / numbers.throughput_bytes_per_s;
        let text = format!(
            "{} a MiB, {} of it ({} %) to compute parity",
            show_time(cpu.process() * of_mib),
            show_time(parity_ns),
            percent(share)
        );
        block.say("", Tone::Plain, &text);
    }
    if let Some(instructions) = numbers.achieved.instructions_per_request {
        block.say(
            "",
            Tone::Plain,
            &format!(
                "{} user-space instructions a request, counted in a separate run",
                grouped(instructions)
            ),
        );
    }
    if let (Some(ceiling), Some(percent_of)) =
        (numbers.achieved.driver_ceiling_iops, numbers.achieved.of_ceiling_percent)
    {
        let no_ops = match numbers.achieved.no_op_ceiling_iops {
            Some(no_ops) => format!(", {} with no-ops in the kernel", short_count(no_ops)),
            None => String::new(),
        };
        let text = format!(
            "{} % of its own limit of {} requests/s without I/O{no_ops}",
            percent(percent_of),
            short_count(ceiling)
        );
        block.say("driver", Tone::Plain, &text);
    }
    for warning in &numbers.warnings {
        block.say("doubt", Tone::Doubt, warning);
    }
}

fn say_rate(block: &mut Block, point: &Point, numbers: &Numbers) {
    let spread = match numbers.interval_95 {
        Some([low, high]) => format!("95 % interval {}", range(&rate(low), &rate(high))),
        None => "too short for an interval".into(),
    };
    if let Some(change) = &numbers.rate_change {
        block.say("rate", Tone::Strong, &change.rates().to_string());
    }
    let runs = if numbers.repeats == 1 {
        "1 run".to_string()
    } else {
        format!("{} runs", numbers.repeats)
    };
    let until = point.written_until().map(|until| format!(" {until}")).unwrap_or_default();
    let text = format!(
        "{}{until}, {} requests/s ({spread}, {runs})",
        rate(numbers.throughput_bytes_per_s),
        short_count(numbers.iops)
    );
    match numbers.rate_change {
        Some(_) => block.say("", Tone::Plain, &format!("mean {text}")),
        None => block.say("rate", Tone::Strong, &text),
    }
    if let (Some(returned), Some(flush)) =
        (numbers.achieved.returned_bytes_per_s, numbers.achieved.sync_ns)
    {
        let text = format!(
            "{} until the last write returned; the flush took {}",
            rate(returned),
            show_time(flush)
        );
        block.say("", Tone::Plain, &text);
    }
}

fn percentiles(latency: &LatencySummary) -> String {
    let show = |ns: u64| show_time(ns as f64);
    let mut text = format!("mean {}, min {}", show_time(latency.mean), show(latency.min));
    for (percentile, ns) in latency.percentiles() {
        text += &format!(", p{percentile} {}", show(ns));
    }
    text + &format!(", max {}", show(latency.max))
}

fn say_achieved(block: &mut Block, asked_depth: u32, achieved: &Achieved) {
    let mut text = format!("{} of {asked_depth} in flight", significant(achieved.mean_depth, 3));
    if let Some(depth) = achieved.device_mean_depth {
        text += &format!(", {} at the device", significant(depth, 3));
    }
    if let Some(busy) = achieved.device_busy_percent {
        text += &format!(", which was busy {} % of the time", percent(busy));
    }
    block.say("depth", Tone::Plain, &text);
    let mut parts = Vec::new();
    if let Some(bytes) = achieved.device_request_bytes {
        parts.push(format!("{} a request at the device", size(bytes.round())));
    }
    for (cached, what) in [
        (achieved.cached_read_percent, "read came from the page cache"),
        (achieved.cached_write_percent, "written were still in the page cache at the end"),
    ] {
        if let Some(cached) = cached.filter(|cached| *cached > 0.0) {
            parts.push(format!("{} % of the bytes {what}", percent(cached)));
        }
    }
    if let Some(cached) =
        achieved.from_cache_percent.filter(|cached| achieved.direct && *cached > 0.0)
    {
        parts.push(format!("{} % of the bytes by a cache", percent(cached)));
    }
    if let (Some(waits), Some(true)) = (achieved.waits_per_request, achieved.polled) {
        parts.push(format!("completions polled for, {} sleeps a request", significant(waits, 2)));
    } else if let (Some(waits), Some(completions)) =
        (achieved.waits_per_request, achieved.wait_completions)
        && completions > 1
    {
        parts.push(format!(
            "{} waits a request, each for up to {completions} completions",
            significant(waits, 2)
        ));
    }
    if achieved.steal_percent > 0.05 {
        parts.push(format!(
            "{} % of a processor taken by the hypervisor",
            percent(achieved.steal_percent)
        ));
    }
    if !parts.is_empty() {
        block.say("device", Tone::Plain, &parts.join(", "));
    }
    if let Some(times) = &achieved.request_times {
        block.say("time", Tone::Plain, &request_times(times));
    }
    for bus in achieved.resources.iter().filter(|one| !one.phases.is_empty()) {
        block.say("bus", Tone::Plain, &phases(bus));
    }
}

pub(super) fn phases(bus: &ResourceUse) -> String {
    let phases: Vec<String> = bus
        .phases
        .iter()
        .map(|phase| format!("{} {} %", phase.name, percent(phase.percent)))
        .collect();
    format!(
        "the {} worked {} % of the time; when it was not free: {}",
        bus.name,
        percent(bus.busy_percent),
        phases.join(", ")
    )
}

/// Draws from minimum to maximum, logarithmically: `├···┃━━╂──│·····┤`.
fn strip(latency: &LatencySummary, room: usize) -> Option<String> {
    let columns = room.saturating_sub(28).min(60);
    let (low, high) = ((latency.min.max(1) as f64).ln(), (latency.max.max(1) as f64).ln());
    if columns < 30 || high - low < 0.1 {
        return None;
    }
    let place = |ns: u64| {
        ((((ns.max(1) as f64).ln() - low) / (high - low)).clamp(0.0, 1.0) * (columns - 1) as f64)
            .round() as usize
    };
    let (p50, p90, p99) = (place(latency.p50), place(latency.p90), place(latency.p99));
    let text = (0..columns).map(|column| match column {
        0 => '├',
        c if c == columns - 1 => '┤',
        c if c == p50 => '┃',
        c if c == p90 => '╂',
        c if c == p99 => '│',
        c if c > p50 && c < p90 => '━',
        c if c > p90 && c < p99 => '─',
        _ => '·',
    });
    Some(format!("{} p50 ┃ p90 ╂ p99 │ (log)", text.collect::<String>()))
}
