//! The study: scouts, measures, refines, confirms, answers.

use crate::bench::{Bench, Progress, THROTTLE_SLICE_NS};
use crate::design::{Cell, Design, OpSpeed, Rank, Setting, Shape, Speed, Way};
use crate::draw::{self, Laid, PeakRates};
use crate::experiments::designs;
use crate::findings::findings;
use crate::limits;
use crate::models;
use crate::phases;
use crate::plan::{Effort, Plan};
use crate::result::{Advertised, Answer, Axis, Experiment, Kind, Peak, Program, Results, SCHEMA};
use crate::sentences;
use machine::{Error, LayerKind, Machine, Nanos, Result, TargetSpec, units};
use measure::Point;
use std::time::{SystemTime, UNIX_EPOCH};
use workload::{Pattern, Stop, Workload};

/// Requests that a run holds, about, on a machine whose runs are all alike.
const QUIET_REQUESTS: f64 = 2000.0;

/// Longest run there, of quick requests.
const LONGEST_QUIET_NS: f64 = 10e9;

/// Shares of the budget at which each part ends.
const FILL_SHARE: f64 = 0.10;
const MAIN_SHARE: f64 = 0.78;
const REFINE_SHARE: f64 = 0.86;
const CONFIRM_SHARE: f64 = 0.96;

/// What no answer can do without may take so much of the budget.
const OVERRUN_SHARE: f64 = 2.0;

/// Points that no budget is too short for.
const LEAST_POINTS: usize = 16;

/// Bounds of a run's length.
const SHORTEST_RUN_NS: f64 = 30e6;

/// What a run takes beyond its length, about: files opened, caches brought into their state, dirty data written.
const OVERHEAD_NS: f64 = 10e6;

/// Weights within so much of each other are measured together, in a random order.
const WEIGHT_CLASS: u32 = 5;

/// Runs of each point below which points are left out instead.
const LEAST_RUNS: f64 = 2.0;

/// Runs of each point that are hoped for: fewer tell an interval too wide to be of use (Student's t), and shorter ones lose little.
const RUNS: usize = 5;
const LONGEST_RUN_NS: f64 = 1e9;

/// Length of a scouting run: more than one of the bursts in which throttled requests are admitted.
const SCOUTING_RUN_NS: Nanos = 150_000_000;

/// So many scouting runs in bursts are no accident.
const BURSTY_SAMPLES: usize = 2;

/// What a flush is thought to do before one was seen: so little that no flush takes long.
const SCOUTING_FLUSH: f64 = 4e6;

/// Runs on a target that admits requests in bursts last so many of them at least.
const BURSTS_A_RUN: u64 = 2;

/// A run that confirms a peak holds at least so many rounds of requests.
const ROUNDS_TO_CONFIRM: f64 = 50.0;

/// Longest run that confirms a peak.
const LONGEST_CONFIRM_NS: f64 = 2.5e9;

/// A run should hold at least so many single requests.
const REQUESTS_A_RUN: f64 = 20.0;

/// Studies a target: opens it, makes every experiment that fits it and the time, and answers.
///
/// # Errors
/// A target that cannot be opened, the user's interrupt. What goes wrong later is a failed point or a skipped experiment.
pub fn study<M: Machine>(
    machine: &M,
    spec: &TargetSpec,
    plan: &Plan,
    program: Program,
    told: &mut dyn FnMut(Progress<'_>),
) -> Result<Results> {
    let began = machine.now();
    let began_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    told(Progress { doing: "making the test file", passed_ns: 0, budget_ns: plan.budget_ns });
    let spec = TargetSpec { fill_ns: Some((plan.budget_ns as f64 * FILL_SHARE) as Nanos), ..spec.clone() };
    let mut target = machine.open(&spec)?;
    let facts = machine.target_facts(&target);
    let mut bench = Bench::new(machine, &mut target, began, plan.budget_ns, plan.seed, told);
    let mut memory = Vec::new();
    if plan.wants("memory") {
        bench.tell("memory");
        memory = machine.memory((plan.budget_ns as f64 * 0.02) as Nanos);
    }
    let mut setting = scout(&mut bench, plan)?;
    let mut laid = lay_out(&mut bench, &mut setting, plan)?;
    let peaks = confirm(&mut bench, &setting, &laid, plan)?;
    let left_out = left_out(&bench, &laid);
    let peaks = keep_reached(&mut bench, &mut laid, &peaks);
    let points: Vec<Point> = bench.entries.iter().map(crate::bench::Entry::point).collect();
    let mut results = Results {
        schema: SCHEMA.into(),
        program,
        kind: Kind::Study,
        target: facts,
        machine: machine.facts(),
        began_unix_s,
        elapsed_ns: 0,
        budget_ns: bench.noisy.then_some(plan.budget_ns),
        seed: plan.seed,
        points,
        rates: Vec::new(),
        experiments: laid
            .iter()
            .map(|one| draw::experiment(one, &bench.entries.iter().map(crate::bench::Entry::point).collect::<Vec<_>>()))
            .collect(),
        answer: None,
        warnings: Vec::new(),
    };
    for experiment in &mut results.experiments {
        match experiment.id.as_str() {
            "memory" => experiment.memory = std::mem::take(&mut memory),
            "buffered" => experiment.figures.extend(phases::figure(&laid, &bench.entries)),
            _ => {}
        }
    }
    answer(&mut results, &bench, &laid, &peaks, left_out);
    results.elapsed_ns = bench.passed();
    Ok(results)
}

/// A few runs that tell how fast the target goes about, so that grids and lengths fit it.
fn scout<M: Machine>(bench: &mut Bench<'_, M>, plan: &Plan) -> Result<Setting> {
    let facts = bench.machine.target_facts(bench.target);
    let unknown = OpSpeed { bytes_per_s: 1e9, iops: 1e5 };
    let members = facts.members;
    let mut setting = Setting {
        facts,
        engines: bench.machine.capabilities().engines,
        speed: Speed { read: unknown, write: unknown, flush_bytes_per_s: SCOUTING_FLUSH },
        run_ns: SCOUTING_RUN_NS,
        seed: plan.seed,
        members,
    };
    let align = setting.facts.direct_align_bytes;
    // A throttle that the system tells of is one, whether or not these runs show it.
    let mut bursts = 0;
    let throttled = setting.facts.layers.iter().any(|layer| layer.kind == LayerKind::Throttle);
    let mut least_run = SHORTEST_RUN_NS as Nanos;
    for way in setting.ways() {
        let mut speed = OpSpeed { bytes_per_s: 0.0, iops: 0.0 };
        let mut single = f64::MAX;
        for (request, depth, pattern) in
            [(4096u32, 1, Pattern::Random), (65_536, 1, Pattern::Seq), (4096, 16, Pattern::Random), (1 << 20, 2, Pattern::Seq)]
        {
            let request = request.max(align).min((setting.facts.size_bytes / 2).max(u64::from(align)) as u32 / align * align);
            let workload = Workload { pattern, ..setting.deep(way, request, depth) };
            let place = bench.push(workload, None);
            bench.sample(place)?;
            if let Some(sample) = bench.entries[place].samples.first() {
                speed.iops = speed.iops.max(sample.iops());
                speed.bytes_per_s = speed.bytes_per_s.max(sample.iops() * f64::from(request));
                single = single.min(sample.mean_service_ns);
                bursts += usize::from(sample.is_bursty());
            } else if let Some(failure) = bench.entries[place].failure.clone() {
                return Err(Error::Unsupported(format!("a first {} failed: {failure}", way.name())));
            }
        }
        match way {
            Way::Read => setting.speed.read = speed,
            Way::Write => setting.speed.write = speed,
        }
        least_run = least_run.max((single * REQUESTS_A_RUN) as Nanos).min(LONGEST_RUN_NS as Nanos);
    }
    if setting.facts.writable && !setting.facts.in_memory {
        let place = bench.push(setting.flushed_write(65_536), None);
        bench.sample(place)?;
        let synced = bench.entries[place].point().numbers.and_then(|numbers| numbers.achieved.synced_bytes_per_s);
        setting.speed.flush_bytes_per_s = synced.unwrap_or(SCOUTING_FLUSH).min(setting.speed.write.bytes_per_s);
    }
    // Scouting runs were too short to count.
    bench.entries.clear();
    if !bench.noisy {
        let slower = setting.ways().iter().map(|way| setting.speed_of(&setting.base(*way)).iops).fold(f64::INFINITY, f64::min);
        setting.run_ns = (QUIET_REQUESTS / slower * 1e9).clamp(SHORTEST_RUN_NS, LONGEST_QUIET_NS) as Nanos;
        return Ok(setting);
    }
    bench.bursty = throttled || bursts >= BURSTY_SAMPLES;
    setting.run_ns =
        if bench.bursty { least_run.max(BURSTS_A_RUN * THROTTLE_SLICE_NS).next_multiple_of(THROTTLE_SLICE_NS) } else { least_run };
    Ok(setting)
}

/// Makes the grids fit the time, measures them, refines the curves around half power. Returns the experiments with their places on the bench.
fn lay_out<M: Machine>(bench: &mut Bench<'_, M>, setting: &mut Setting, plan: &Plan) -> Result<Vec<Laid>> {
    let most = match plan.effort {
        Effort::Quick => Rank::Core,
        Effort::Normal => Rank::Usual,
        Effort::Full => Rank::Rich,
    };
    let wanted = |setting: &Setting| -> Vec<Design> {
        designs(setting)
            .into_iter()
            .map(|mut design| {
                design.cells.retain(|cell| cell.rank <= most && (setting.facts.writable || !cell.workload.writes()));
                if !plan.wants(design.id) {
                    design.skipped = Some("it was not asked for (--only)".into());
                    design.cells.clear();
                }
                design
            })
            .collect()
    };
    let mut designs = wanted(setting);
    if bench.noisy {
        let cells: usize = designs.iter().map(|design| design.cells.len()).sum();
        let least_run = setting.run_ns as f64;
        let left = (bench.at(MAIN_SHARE).saturating_sub(bench.machine.now())) as f64;
        // Many cells stand in several experiments and are run once.
        setting.run_ns = (left / (cells.max(1) as f64 * 0.75 * RUNS as f64) - OVERHEAD_NS).clamp(least_run, LONGEST_RUN_NS) as Nanos;
        let beside = if bench.bursty { THROTTLE_SLICE_NS as f64 } else { OVERHEAD_NS };
        let runs = left / (setting.run_ns as f64 + beside);
        designs = wanted(setting);
        let thinned = thin(&mut designs, ((runs / LEAST_RUNS) as usize).max(LEAST_POINTS));
        bench.left_out.extend(thinned);
    }
    let mut laid: Vec<Laid> = designs
        .into_iter()
        .map(|design| {
            let places = design.cells.iter().map(|cell| bench.add(cell, setting)).collect();
            Laid { design, places }
        })
        .collect();
    let weighed = weighed(&laid);
    // Each once, what tells most first, in case the time is short; then interleaved.
    let classes: std::collections::BTreeSet<u32> = weighed.values().map(|weight| weight / WEIGHT_CLASS).collect();
    let mut first = true;
    for class in classes {
        let places: Vec<usize> = weighed.iter().filter(|(_, weight)| **weight / WEIGHT_CLASS == class).map(|(place, _)| *place).collect();
        // Without the first of them there is no answer, so they may overrun a budget that is too short.
        let until = if first { bench.at(OVERRUN_SHARE) } else { bench.at(MAIN_SHARE) };
        bench.rounds(&places, 1, until)?;
        first = false;
    }
    count_instructions(bench, &laid)?;
    let all: Vec<usize> = weighed.into_keys().collect();
    bench.rounds(&all, RUNS, bench.at(MAIN_SHARE))?;
    refine(bench, setting, &mut laid)?;
    bench.tighten(&all, bench.at(REFINE_SHARE))?;
    Ok(laid)
}

/// Leaves cells out where there are more workloads than runs allow, those first that tell least; says how many.
fn thin(designs: &mut [Design], most: usize) -> Option<String> {
    let mut seen: Vec<(u32, &Workload, Option<&Shape>)> = Vec::new();
    for cell in designs.iter().flat_map(|design| &design.cells) {
        match seen.iter_mut().find(|one| one.1 == &cell.workload && one.2 == cell.shape.as_ref()) {
            Some(one) => one.0 = one.0.min(weight(cell)),
            None => seen.push((weight(cell), &cell.workload, cell.shape.as_ref())),
        }
    }
    if seen.len() <= most {
        return None;
    }
    let dropped = seen.len() - most;
    // Stable: of cells that tell as much, those of the earlier experiments stay.
    seen.sort_by_key(|one| one.0);
    let kept: Vec<(Workload, Option<Shape>)> = seen.iter().take(most).map(|one| (one.1.clone(), one.2.cloned())).collect();
    for design in designs.iter_mut() {
        design.cells.retain(|cell| kept.iter().any(|(workload, shape)| *workload == cell.workload && *shape == cell.shape));
    }
    Some(format!("{dropped} of {} points, so that each of the others is run {LEAST_RUNS} times", dropped + kept.len()))
}

/// How little a cell tells: rich grids first, then the sizes between those that show a curve's shape.
fn weight(cell: &Cell) -> u32 {
    if cell.shape.is_some() {
        // A stripe is what several targets are named for.
        return 0;
    }
    let rank = match cell.rank {
        Rank::Core => 0,
        Rank::Usual => 20,
        Rank::Rich => 40,
    };
    let size = match cell.workload.request_bytes {
        // Models and half power need the whole curve.
        _ if cell.group == "unbuffered" => 0,
        4096 | 65_536 | 1_048_576 => 0,
        16_384 | 262_144 => 4,
        _ => 8,
    };
    let group = match cell.group {
        "unbuffered" | "depth_read" | "depth_write" => 0,
        "buffered" | "random" | "allocation" => 1,
        "cost" | "streams" | "device_cache" => 2,
        _ => 3,
    };
    WEIGHT_CLASS + rank + size + group
}

/// Every place once, with the least weight of the cells that stand there.
fn weighed(laid: &[Laid]) -> std::collections::BTreeMap<usize, u32> {
    let mut weights = std::collections::BTreeMap::new();
    for (cell, place) in laid.iter().flat_map(|one| one.design.cells.iter().zip(&one.places)) {
        if let Some(place) = place {
            let least = weights.entry(*place).or_insert(u32::MAX);
            *least = weight(cell).min(*least);
        }
    }
    weights
}

/// Counts instructions for the cost experiment's corners, in runs of their own: a counter slows what it counts.
fn count_instructions<M: Machine>(bench: &mut Bench<'_, M>, laid: &[Laid]) -> Result<()> {
    if !bench.machine.capabilities().counts_instructions {
        return Ok(());
    }
    let Some(cost) = laid.iter().find(|one| one.design.id == "cost") else { return Ok(()) };
    let corners = cost.design.cells.iter().zip(&cost.places).filter(|(cell, _)| matches!(cell.x as u64, 4096 | 65_536 | 1_048_576));
    let places: Vec<usize> = corners.filter_map(|(_, place)| *place).collect();
    for place in places {
        if bench.machine.now() < bench.at(MAIN_SHARE) && bench.entries[place].failure.is_none() {
            bench.count(place)?;
        }
    }
    Ok(())
}

/// Adds a size between the two around each half-power point, where that would tell more, and measures it.
fn refine<M: Machine>(bench: &mut Bench<'_, M>, setting: &Setting, laid: &mut [Laid]) -> Result<()> {
    let points: Vec<Point> = bench.entries.iter().map(crate::bench::Entry::point).collect();
    let mut added = Vec::new();
    for one in laid.iter_mut().filter(|one| matches!(one.design.id, "unbuffered" | "depth" | "buffered")) {
        let drawn = draw::experiment(one, &points);
        let mut cells: Vec<(Cell, usize)> = Vec::new();
        for (figure, series) in drawn
            .figures
            .iter()
            .filter(|figure| figure.x == Axis::RequestBytes)
            .flat_map(|figure| figure.series.iter().map(move |series| (figure, series)))
        {
            let Some(half) = series.half_power.as_ref().filter(|half| !half.at_or_below) else { continue };
            let Some(above) = half.smallest else { continue };
            let Some(below) = series.values.iter().rfind(|value| value.x < above) else { continue };
            let align = f64::from(setting.facts.direct_align_bytes);
            let middle = ((below.x * above).sqrt() / align).round() * align;
            if above / below.x < 1.9 || middle <= below.x || middle >= above {
                continue;
            }
            let Some(like) = one.design.cells.iter().find(|cell| cell.group == figure.id && cell.series == series.name && cell.x == above)
            else {
                continue;
            };
            let cell = Cell { x: middle, workload: Workload { request_bytes: middle as u32, ..like.workload.clone() }, ..like.clone() };
            if let Some(place) = bench.add(&cell, setting) {
                cells.push((cell, place));
            }
        }
        for (cell, place) in cells {
            one.design.cells.push(cell);
            one.places.push(Some(place));
            added.push(place);
        }
    }
    bench.weigh(&added, 2.0);
    bench.rounds(&added, RUNS, bench.at(REFINE_SHARE))?;
    Ok(())
}

/// The best rates, measured again in longer runs: the best of many noisy figures is too good to be true.
fn confirm<M: Machine>(bench: &mut Bench<'_, M>, setting: &Setting, laid: &[Laid], plan: &Plan) -> Result<Vec<(Way, usize)>> {
    // What the page cache serves or takes is no rate of the target, unless the target lives there.
    let from_cache =
        |workload: &Workload, way: Way| !setting.facts.in_memory && (workload.cache != machine::CacheState::Cold || way == Way::Write);
    let mut confirmed: Vec<(Way, Vec<usize>)> = Vec::new();
    let drawn: std::collections::BTreeSet<usize> = laid.iter().flat_map(|one| one.places.iter().flatten().copied()).collect();
    for way in setting.ways() {
        let mut candidates: Vec<(usize, f64)> = drawn
            .iter()
            .filter_map(|&place| {
                let entry = &bench.entries[place];
                let whole = entry.shape.as_ref().is_none_or(|shape| shape.members.len() as u32 == setting.members);
                let fits = entry.workload.read_percent == way.read_percent()
                    && entry.workload.allocation == machine::Allocation::Written
                    && entry.workload.region_bytes.is_none()
                    && entry.workload.limit_bytes.is_none();
                let cached = !entry.workload.buffering.is_direct() && (setting.direct() || from_cache(&entry.workload, way));
                let rate = entry.point().rate()?;
                // Where requests are admitted in bursts, only runs of whole bursts tell a rate.
                let told = !bench.bursty || entry.in_bursts || setting.facts.in_memory;
                (whole && fits && !cached && told).then_some((place, rate))
            })
            .collect();
        candidates.sort_by(|a, b| b.1.total_cmp(&a.1));
        let chosen: Vec<usize> = if bench.noisy {
            candidates.iter().take(if bench.bursty { 1 } else { 2 }).map(|&(place, _)| confirming(bench, place, setting, plan)).collect()
        } else {
            candidates.iter().take(1).map(|&(place, _)| place).collect()
        };
        confirmed.push((way, chosen));
    }
    let all: Vec<usize> = confirmed.iter().flat_map(|(_, places)| places.iter().copied()).collect();
    // The answer stands on these: three runs each, even where the time is up.
    bench.rounds(&all, 3, Nanos::MAX)?;
    bench.tighten(&all, bench.at(CONFIRM_SHARE))?;
    let best = |places: &[usize]| {
        places.iter().copied().filter_map(|place| Some((place, bench.entries[place].point().rate()?))).max_by(|a, b| a.1.total_cmp(&b.1))
    };
    Ok(confirmed.iter().filter_map(|(way, places)| Some((*way, best(places)?.0))).collect())
}

/// Puts an entry on the bench again, to be run longer, from a steady state to a steady state.
fn confirming<M: Machine>(bench: &mut Bench<'_, M>, place: usize, setting: &Setting, plan: &Plan) -> usize {
    let entry = &bench.entries[place];
    let round = entry.samples.last().map_or(0.0, |sample| sample.mean_service_ns);
    let in_bursts = entry.in_bursts;
    let longest = (plan.budget_ns as f64 * 0.02).clamp(setting.run_ns as f64, LONGEST_CONFIRM_NS);
    let wanted = (plan.budget_ns as f64 * 0.006).max(setting.run_ns as f64).max(round * ROUNDS_TO_CONFIRM);
    let run = (wanted.min(longest) as Nanos).next_multiple_of(THROTTLE_SLICE_NS);
    let (workload, shape) = (Workload { stop: Stop::AfterNs(run), ..entry.workload.clone() }, entry.shape.clone());
    let place = bench.push(workload, shape);
    let ramp = ((round * 2.0) as Nanos).min(run);
    if in_bursts {
        bench.between_bursts(place, ramp);
    } else {
        bench.entries[place].ramp_ns = ramp.max(THROTTLE_SLICE_NS / 2);
    }
    place
}

/// Leaves what was never run out of the experiments and off the bench; returns where the peaks are then.
fn keep_reached<M: Machine>(bench: &mut Bench<'_, M>, laid: &mut [Laid], peaks: &[(Way, usize)]) -> Vec<(Way, usize)> {
    let places = bench.drop_unreached();
    for place in laid.iter_mut().flat_map(|one| &mut one.places) {
        *place = place.and_then(|place| places[place]);
    }
    peaks.iter().filter_map(|&(way, place)| Some((way, places[place]?))).collect()
}

fn answer<M: Machine>(results: &mut Results, bench: &Bench<'_, M>, laid: &[Laid], peaks: &[(Way, usize)], left_out: Vec<String>) {
    let facts = results.target.clone();
    let points = &results.points;
    let peaks: Vec<Peak> = peaks
        .iter()
        .filter_map(|&(way, place)| {
            let numbers = points[place].numbers.as_ref()?;
            Some(Peak {
                op: way.name().into(),
                throughput_bytes_per_s: numbers.throughput_bytes_per_s,
                interval_95: numbers.interval_95,
                point: place,
                settings: settings(points[place].workload.options(), bench.entries[place].shape.as_ref()),
                advertised: limits::advertised(&facts, way.name()),
            })
        })
        .collect();
    let of = |op: &str| peaks.iter().find(|peak| peak.op == op);
    let rate = |op: &str| of(op).map(|peak| peak.throughput_bytes_per_s);
    let advertised = |op: &str| of(op).and_then(|peak| peak.advertised.as_ref()).map(|one: &Advertised| one.throughput_bytes_per_s);
    let measured = PeakRates { read: rate("read"), write: rate("write") };
    let advertised = PeakRates { read: advertised("read"), write: advertised("write") };
    let find = |experiments: &[Experiment], id: &str| experiments.iter().find(|one| one.id == id).cloned();
    let half_power = find(&results.experiments, "depth")
        .map(|depth| models::half_power_points(&depth, points, measured, advertised))
        .unwrap_or_default();
    let costs = find(&results.experiments, "cost").map(|cost| models::costs(&cost, points)).unwrap_or_default();
    let service_times = models::service_times(&results.experiments, points);
    let limits = peaks.iter().map(|peak| limits::limit(peak, &points[peak.point], more(peak, points), &facts, &results.machine)).collect();
    for experiment in &mut results.experiments {
        experiment.sentence = sentences::sentence(experiment, &costs, &service_times);
    }
    results.answer = Some(Answer {
        doubts: doubts(results, &peaks, bench.noisy),
        limits,
        half_power,
        costs,
        service_times,
        findings: findings(laid, &bench.entries, &results.points, &facts.name.replace(", ", " ")),
        left_out,
        peaks,
    });
    results.warnings = facts.warnings;
}

/// The options of a peak, with the stripe's shape.
fn settings(options: String, shape: Option<&Shape>) -> String {
    match shape {
        Some(shape) if shape.members.len() > 1 => format!("{options} --chunk {}", units::show_size(shape.chunk).replace(' ', "")),
        _ => options,
    }
}

/// The best rate with the same operation and at least twice as many requests outstanding.
fn more(peak: &Peak, points: &[Point]) -> Option<f64> {
    let workload = &points[peak.point].workload;
    points
        .iter()
        .filter(|point| point.workload.read_percent == workload.read_percent && point.workload.buffering == workload.buffering)
        .filter(|point| {
            let bytes = |workload: &Workload| u64::from(workload.outstanding()) * u64::from(workload.request_bytes);
            bytes(&point.workload) >= 2 * bytes(workload)
        })
        .filter_map(Point::rate)
        .max_by(f64::total_cmp)
}

/// Reasons not to trust the answer, the gravest first: of the target, then of the peaks, then those that many points share.
fn doubts(results: &Results, peaks: &[Peak], noisy: bool) -> Vec<String> {
    let mut doubts = results.target.warnings.clone();
    for peak in peaks {
        for warning in results.points[peak.point].numbers.iter().flat_map(|numbers| &numbers.warnings) {
            let said = format!("the best {}: {warning}", peak.op);
            if !doubts.contains(&said) && !doubts.contains(warning) {
                doubts.push(said);
            }
        }
    }
    let failed = results.points.iter().filter(|point| point.error.is_some()).count();
    if failed > 0 {
        doubts.push(format!("{failed} of {} points failed; they are shown as failed", results.points.len()));
    }
    // Where nothing is noisy, an interval is no doubt: it tells how even the one run was.
    let wide = results
        .points
        .iter()
        .filter(|point| point.numbers.as_ref().is_some_and(|numbers| numbers.relative_half_width.is_none_or(|width| width > 0.25)))
        .count();
    if noisy && wide * 3 > results.points.len() {
        doubts.push(format!(
            "{wide} of {} points are uncertain by more than 25 %: the machine is noisy, or the budget small; give it more time (--budget)",
            results.points.len()
        ));
    }
    doubts
}

/// What the budget left out, in a sentence each.
fn left_out<M: Machine>(bench: &Bench<'_, M>, laid: &[Laid]) -> Vec<String> {
    let mut said = Vec::new();
    for one in laid {
        let missed = one
            .places
            .iter()
            .flatten()
            .filter(|&&place| bench.entries[place].samples.is_empty() && bench.entries[place].failure.is_none())
            .count();
        if missed > 0 {
            said.push(format!("{}: {missed} of {} points were not reached in the time", one.design.title, one.places.len()));
        }
    }
    said.extend(bench.left_out.iter().cloned());
    if bench.too_long > 0 {
        said.push(format!("{} points whose single round of requests would outlast several runs", bench.too_long));
    }
    said
}
