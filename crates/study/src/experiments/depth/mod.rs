use super::prelude::*;
use machine::{Buffering, CacheState, Engine, Hint};

pub(super) static EXPERIMENT: Experiment = Experiment {
    refines: true,
    ..Experiment::new(
        "depth",
        "Request size and depth",
        "Which request size, depth and engine reach the peak?",
        &[&READ, &WRITE, &MECHANISM],
        grid,
        conclude,
    )
};

/// 1, 3 and 8 are those of the 1997 study; modern devices need more.
const DEPTHS: [(u32, Rank); 7] = [
    (1, Rank::Core),
    (3, Rank::Usual),
    (8, Rank::Core),
    (32, Rank::Core),
    (64, Rank::Rich),
    (128, Rank::Usual),
    (256, Rank::Rich),
];

const MECHANISM_DEPTH: u32 = 128;

static READ: CurveSet = CurveSet::new(
    Axis::RequestBytes,
    0,
    &[FigureDesign::new("depth_read", "Reading: request size x depth", Axis::BytesPerS)],
)
.with_half_of_peak();

static WRITE: CurveSet = CurveSet::new(
    Axis::RequestBytes,
    0,
    &[FigureDesign::new("depth_write", "Writing: request size x depth", Axis::BytesPerS)],
)
.with_half_of_peak();

static MECHANISM: CurveSet = CurveSet::new(
    Axis::Depth,
    3,
    &[
        FigureDesign::new("mechanism", "Mechanisms: random reads of 4 KiB by depth", Axis::Iops),
        FigureDesign::new(
            "mechanism_cost",
            "Mechanisms: processor time per request, by depth",
            Axis::CpuNsPerRequest,
        ),
    ],
)
.with_half_power();

fn deep(op: OpKind, depth: u32) -> Curve {
    let set = if op == OpKind::Write { &WRITE } else { &READ };
    Curve::of(set, format!("depth {depth}")).ordered(depth)
}

fn mechanism(engine: Engine) -> Curve {
    Curve::of(&MECHANISM, engine)
}

fn grid(setting: &StudyContext) -> Grid {
    let mut grid = Grid::new(setting);
    for op in setting.ops() {
        for (depth, depth_rank) in DEPTHS {
            for (size, rank) in setting.sizes() {
                let core = matches!(size, 4096 | 65_536 | 1_048_576);
                let rank = if core { depth_rank } else { rank.max(depth_rank).max(Rank::Usual) };
                grid.add(deep(op, depth), size, setting.deep(op, size, depth), rank);
            }
        }
    }
    mechanisms(setting, &mut grid);
    grid
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let mut conclusion = Conclusion::default();
    for op in OPS {
        let curves: Vec<(u32, Vec<Reading>)> = DEPTHS
            .into_iter()
            .map(|(depth, _)| (depth, found.curve(&deep(op, depth))))
            .filter(|(_, readings)| !readings.is_empty())
            .collect();
        conclusion.sentences.extend(sentence(op, &curves));
        conclusion.comparisons.extend(deeper(op, &curves));
        conclusion.half_power.extend(models::half_power_points(op, &curves, found));
    }
    if let Some((depth, engines)) = by_mechanism(found)
        && let (Some(slow), Some(fast)) = (engines.first(), engines.last())
    {
        let sentence = match slow.1.change_to(&fast.1) {
            change @ Effect::By(_) => {
                format!(
                    "With {depth} outstanding, {} instead of {} {}.",
                    fast.0,
                    slow.0,
                    effect(change)
                )
            }
            Effect::Nothing => format!("The engine makes no difference with {depth} outstanding."),
            Effect::Unsure => format!("Whether the engine matters is undecided: {UNEVEN}."),
        };
        conclusion.sentences.push(sentence);
        conclusion.sentences.extend(cost_by_mechanism(found, depth, &engines));
        let title =
            format!("Keep {depth} random reads outstanding by {}, not by {}", fast.0, slow.0);
        let setting = format!("engine {}", fast.0);
        conclusion.comparisons.push(Comparison::new(
            Change::Mechanism,
            slow.1,
            fast.1,
            title,
            setting,
        ));
    }
    conclusion
}

fn mechanisms(setting: &StudyContext, grid: &mut Grid) {
    let request = 4096.max(setting.facts.direct_align_bytes);
    let base =
        Workload { request_bytes: request, pattern: Pattern::Random, ..setting.base(OpKind::Read) };
    // On a simulated Windows the generic asynchronous engines are one of its own three.
    let windows = setting.engines.iter().any(|engine| engine.is_windows());
    for &engine in &setting.engines {
        if windows && engine.is_async() && !engine.is_windows() {
            continue;
        }
        for (depth, rank) in DEPTHS {
            if depth > engine.max_depth().min(MECHANISM_DEPTH)
                || (engine.has_workers() && depth == 1)
            {
                continue;
            }
            let workload = if engine.is_mapped() {
                // A mapping goes through the cache; with the cache dropped, each first touch is a
                // read.
                let cache =
                    if setting.facts.in_memory { CacheState::AsIs } else { CacheState::Cold };
                Workload {
                    engine,
                    buffering: Buffering::Buffered,
                    cache,
                    hint: Hint::Random,
                    ..base.clone()
                }
            } else {
                Workload { engine, depth, ..base.clone() }
            };
            grid.add(mechanism(engine), depth, workload, rank);
        }
    }
}

fn by_mechanism(found: &Found<'_>) -> Option<(u32, Vec<(Engine, Reading)>)> {
    [32, 8].into_iter().find_map(|depth: u32| {
        let at = |engine| Some((engine, found.at(&mechanism(engine), depth)?));
        let mut engines: Vec<(Engine, Reading)> = Engine::ALL.into_iter().filter_map(at).collect();
        engines.sort_by(|a, b| a.1.y.total_cmp(&b.1.y));
        (engines.len() > 1).then_some((depth, engines))
    })
}

fn cost_by_mechanism(
    found: &Found<'_>,
    depth: u32,
    engines: &[(Engine, Reading)],
) -> Option<String> {
    let cost = |engine| {
        let readings = found.curve_by(&mechanism(engine), Axis::CpuNsPerRequest);
        Some((engine, readings.into_iter().find(|reading| reading.x == f64::from(depth))?))
    };
    let mut costs: Vec<(Engine, Reading)> =
        engines.iter().filter_map(|&(engine, _)| cost(engine)).collect();
    costs.sort_by(|a, b| a.1.y.total_cmp(&b.1.y));
    let (cheap, costly) = (costs.first()?, costs.last()?);
    // A simulated machine repeats exactly, so its smaller differences are differences too.
    let differs = cheap.1.exact && costly.1.y > cheap.1.y;
    if !differs {
        cheap.1.change_to(&costly.1).gain()?;
    }
    let each: Vec<String> =
        costs.iter().map(|(engine, cost)| format!("{} with {engine}", show_time(cost.y))).collect();
    let (last, others) = each.split_last()?;
    let others = others.join(", ");
    Some(format!("Processor time of a request there: {others} and {last}."))
}

fn sentence(op: OpKind, curves: &[(u32, Vec<Reading>)]) -> Option<String> {
    let all: Vec<Reading> =
        curves.iter().flat_map(|(_, readings)| readings.iter().copied()).collect();
    let max = best(&all)?;
    let good =
        |readings: &[Reading]| readings.iter().copied().find(|reading| reading.y >= ENOUGH * max.y);
    let (depth, min) = curves
        .iter()
        .filter_map(|(depth, readings)| Some((*depth, good(readings)?)))
        .min_by(|a, b| (f64::from(a.0) * a.1.x).total_cmp(&(f64::from(b.0) * b.1.x)))?;
    let reach = format!("{} reach {} with {} requests", plural(op), show_rate(min.y), size(min.x));
    let mut said = match curves.first() {
        _ if depth == 1 => format!("{reach} one at a time"),
        Some((1, single)) => match good(single) {
            Some(single) => {
                format!("{reach}, {depth} outstanding; one at a time needs {}", size(single.x))
            }
            None => {
                let max = best(single)?;
                format!(
                    "{reach}, {depth} outstanding; one at a time reaches {}, with {}",
                    show_rate(max.y),
                    size(max.x)
                )
            }
        },
        _ => format!("{reach}, {depth} outstanding"),
    };
    let beyond: Vec<Reading> = curves
        .iter()
        .filter(|(deeper, _)| *deeper > depth)
        .flat_map(|(_, readings)| readings.iter().copied())
        .collect();
    if let Some(beyond) = best(&beyond) {
        match min.change_to(&beyond) {
            Effect::By(more) if more > 0.0 => {
                said += &format!("; keeping more outstanding gains {}", percent(more))
            }
            Effect::Unsure => {
                said += &format!("; whether keeping more outstanding gains is undecided, {UNEVEN}")
            }
            _ => said += "; keeping more outstanding gains nothing",
        }
    }
    Some(said + ".")
}

fn deeper(op: OpKind, curves: &[(u32, Vec<Reading>)]) -> Option<Comparison> {
    let at_64k = |(depth, readings): &(u32, Vec<Reading>)| {
        let reading = readings.iter().find(|reading| reading.x == 65_536.0)?;
        Some(Reading { x: f64::from(*depth), ..*reading })
    };
    let by_depth: Vec<Reading> = curves.iter().filter_map(at_64k).collect();
    let title =
        |depth: f64| format!("Keep {depth} sequential {op}s of 64 KiB outstanding, not one");
    Comparison::of_depths(&by_depth, title)
}
