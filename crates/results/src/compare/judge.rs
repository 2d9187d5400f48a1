use super::measure::Measure;
use super::side::{Measurement, Reading};
use super::{Difference, IntervalFrom, Series, Summary, Verdict};
use measure::stats::{Change, Level, change_at_any_time, holm};

/// Matches 95 % intervals.
const CHANCE: f64 = 0.05;

pub(super) struct Judgement {
    difference: Difference,
    change: Option<Change>,
    /// A side's changed rate may explain the whole difference.
    changing: bool,
}

impl Judgement {
    /// `None` without a ratio.
    pub(super) fn apart(
        asked: &Measurement,
        a: &Reading,
        b: &Reading,
        changing: bool,
    ) -> Option<Judgement> {
        let change = match (level(a), level(b)) {
            (Some(a), Some(b)) => Some(Change::between(&a, &b)),
            _ => None,
        };
        let judgements = Judgement::new(
            asked,
            a.measure,
            [a.value, b.value],
            [a.runs.clone(), b.runs.clone()],
            change,
        )?;
        Some(Judgement { changing, ..judgements })
    }

    pub(super) fn in_turn(series: &Series) -> Option<Judgement> {
        let mean = |blocks: &[[f64; 2]]| {
            let logs = blocks.iter().flatten().map(|value| value.ln()).sum::<f64>();
            (logs / (2 * blocks.len()) as f64).exp()
        };
        let [a, b] = [&series.a, &series.b].map(|blocks| mean(blocks));
        let runs = [&series.a, &series.b].map(|blocks| blocks.iter().flatten().copied().collect());
        let change = match (series.exact, Level::exact(a), Level::exact(b)) {
            (true, Some(a), Some(b)) => Some(Change::between(&a, &b)),
            _ => change_at_any_time(&series.logs()),
        };
        Judgement::new(&series.asked, series.measure, [a, b], runs, change)
    }

    fn new(
        asked: &Measurement,
        measure: Measure,
        [a, b]: [f64; 2],
        [runs_a, runs_b]: [Vec<f64>; 2],
        change: Option<Change>,
    ) -> Option<Judgement> {
        let sound = |value: f64| value.is_finite() && value > 0.0;
        if !sound(a) || !sound(b) {
            return None;
        }
        let change = change.filter(|change| change.high.is_finite());
        let difference = Difference {
            question: asked.question.clone(),
            label: asked.label.clone(),
            keys: asked.keys.clone(),
            kind: asked.kind.clone(),
            measure,
            a,
            b,
            runs_a,
            runs_b,
            change_percent: percent(change.map_or(b / a, |change| change.ratio)),
            interval_95_percent: change.map(|change| [percent(change.low), percent(change.high)]),
            p: change.map(|change| change.p),
            p_holm: None,
            detectable_percent: change
                .map(|change| change.detectable * 100.0)
                .filter(|percent| percent.is_finite()),
            verdict: Verdict::Untold,
        };
        Some(Judgement { difference, change, changing: false })
    }
}

fn level(reading: &Reading) -> Option<Level> {
    if reading.exact {
        return Level::exact(reading.value);
    }
    match reading.interval_95 {
        Some(interval) => Level::of_interval(reading.value, interval, reading.runs.len() as u64),
        None => Level::of_runs(&reading.runs),
    }
}

fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

pub(super) fn verdict(
    measure: Measure,
    interval_percent: [f64; 2],
    p_holm: f64,
    worth_percent: f64,
) -> Verdict {
    let [low, high] = interval_percent;
    let matters = low < -worth_percent || high > worth_percent;
    let up = low + high > 0.0;
    match (p_holm < CHANCE && matters, up == measure.is_rate()) {
        (false, _) => Verdict::NoDifference,
        (true, true) => Verdict::Better,
        (true, false) => Verdict::Worse,
    }
}

pub(super) fn judge(
    judgements: Vec<Judgement>,
    worth_percent: f64,
) -> (Vec<Difference>, Vec<Summary>) {
    let mut differences = Vec::with_capacity(judgements.len());
    let mut summaries = Vec::new();
    let mut rest = judgements;
    for measure in Measure::ALL {
        let (mut of_measure, others): (Vec<Judgement>, Vec<Judgement>) =
            rest.into_iter().partition(|one| one.difference.measure == measure);
        rest = others;
        let known: Vec<f64> = of_measure.iter().filter_map(|one| one.difference.p).collect();
        let mut adjusted = holm(&known).into_iter();
        for Judgement { difference, changing, .. } in &mut of_measure {
            if let (Some(interval), Some(_)) = (difference.interval_95_percent, difference.p) {
                let p = adjusted.next().unwrap_or(1.0);
                difference.p_holm = Some(p);
                difference.verdict = verdict(measure, interval, p, worth_percent);
            }
            if *changing {
                difference.verdict = Verdict::Changing;
            }
        }
        summaries.extend(self::summaries(measure, &of_measure, worth_percent));
        differences.extend(of_measure.into_iter().map(|one| one.difference));
    }
    (differences, summaries)
}

fn summaries(measure: Measure, judgements: &[Judgement], worth_percent: f64) -> Vec<Summary> {
    if judgements.is_empty() {
        return Vec::new();
    }
    let all: Vec<&Judgement> = judgements.iter().collect();
    let mut kinds: Vec<&str> = Vec::new();
    for one in judgements {
        if !one.difference.kind.is_empty() && !kinds.contains(&one.difference.kind.as_str()) {
            kinds.push(&one.difference.kind);
        }
    }
    let mut summaries = vec![summary(measure, None, &all, worth_percent)];
    if kinds.len() > 1 {
        let mut of_kinds: Vec<Summary> = kinds
            .into_iter()
            .map(|kind| {
                let of_kind: Vec<&Judgement> =
                    judgements.iter().filter(|one| one.difference.kind == kind).collect();
                summary(measure, Some(kind), &of_kind, worth_percent)
            })
            .collect();
        let adjusted = holm(&of_kinds.iter().filter_map(|one| one.p).collect::<Vec<f64>>());
        for (one, p) in of_kinds.iter_mut().filter(|one| one.p.is_some()).zip(adjusted) {
            one.p = Some(p);
            if let (Some(interval), true) =
                (one.interval_95_percent, one.verdict != Verdict::Changing)
            {
                one.verdict = verdict(measure, interval, p, worth_percent);
            }
        }
        summaries.extend(of_kinds);
    }
    summaries
}

fn summary(
    measure: Measure,
    kind: Option<&str>,
    judgements: &[&Judgement],
    worth_percent: f64,
) -> Summary {
    // Means use only comparable questions, if there are any.
    let sound: Vec<&Judgement> = judgements.iter().filter(|one| !one.changing).copied().collect();
    let judgements = if sound.is_empty() { judgements } else { &sound };
    let changes: Option<Vec<Change>> = judgements.iter().map(|one| one.change).collect();
    let (mean, interval_from) = match changes {
        Some(changes) => (Change::geometric_mean(&changes), IntervalFrom::Runs),
        None => (over_questions(judgements), IntervalFrom::Questions),
    };
    let count = |verdict: Verdict| {
        judgements.iter().filter(|one| one.difference.verdict == verdict).count()
    };
    let logs =
        judgements.iter().map(|one| (one.difference.change_percent / 100.0).ln_1p()).sum::<f64>();
    let interval_95_percent = mean.map(|mean| [percent(mean.low), percent(mean.high)]);
    Summary {
        measure,
        kind: kind.map(Into::into),
        questions: judgements.len(),
        mean_percent: judgements.iter().map(|one| one.difference.change_percent).sum::<f64>()
            / judgements.len() as f64,
        geometric_mean_percent: percent((logs / judgements.len() as f64).exp()),
        interval_95_percent,
        interval_from,
        p: mean.map(|mean| mean.p),
        detectable_percent: mean
            .map(|mean| mean.detectable * 100.0)
            .filter(|percent| percent.is_finite()),
        better: count(Verdict::Better),
        worse: count(Verdict::Worse),
        no_difference: count(Verdict::NoDifference),
        verdict: match (mean, interval_95_percent) {
            _ if sound.is_empty() => Verdict::Changing,
            (Some(mean), Some(interval)) => verdict(measure, interval, mean.p, worth_percent),
            _ => Verdict::Untold,
        },
    }
}

/// Geometric mean, with Student's t on the logarithms.
fn over_questions(judgements: &[&Judgement]) -> Option<Change> {
    let logs: Vec<f64> =
        judgements.iter().map(|one| (one.difference.change_percent / 100.0).ln_1p()).collect();
    Change::of_pairs(&logs)
}
