use super::measure::Measure;
use super::{Comparison, Difference, IntervalFrom, Method, Summary, Verdict};
use machine::units::{ShownChange, show_change, show_change_range, show_time, significant};

pub(super) fn sentences(comparison: &Comparison) -> Vec<String> {
    let mut said = Vec::new();
    let mains: Vec<Measure> = comparison.main_measure().into_iter().collect();
    let is_of_time = comparison.is_of_time();
    if is_of_time {
        said.extend(main(comparison, Measure::Duration));
    }
    for &measure in mains.iter().filter(|&&measure| measure != Measure::Duration) {
        // A mean over the parts of a benchmark would contradict its time.
        said.extend(if is_of_time {
            by_kind(comparison, measure).into_iter().collect()
        } else {
            main(comparison, measure)
        });
    }
    // Another rate of the same questions adds nothing.
    let says_more = |measure: &Measure| {
        let known: Vec<&str> = mains
            .iter()
            .flat_map(|main| comparison.of(*main))
            .map(|one| one.question.as_str())
            .collect();
        !mains.contains(measure)
            && *measure != Measure::Duration
            && (!measure.is_rate()
                || !is_of_time
                    && comparison.of(*measure).any(|one| !known.contains(&one.question.as_str())))
    };
    let others: Vec<String> = Measure::ALL
        .into_iter()
        .filter(says_more)
        .filter_map(|measure| {
            let all = comparison
                .summaries
                .iter()
                .find(|one| one.measure == measure && one.kind.is_none())?;
            Some(format!("{} {}", measure.heading(), short(all)))
        })
        .collect();
    if !others.is_empty() {
        said.push(format!("Besides, {}.", others.join("; ")));
    }
    if said.is_empty() {
        let why = if comparison.only_a.is_empty() && comparison.only_b.is_empty() {
            "nothing was measured on both sides"
        } else {
            "the two have no question in common; what only one of them has is listed"
        };
        said.push(format!("Nothing to compare: {why}."));
    }
    said
}

fn main(comparison: &Comparison, measure: Measure) -> Vec<String> {
    let of_measure = |one: &&Summary| one.measure == measure;
    let Some(all) = comparison.summaries.iter().filter(of_measure).find(|one| one.kind.is_none())
    else {
        return Vec::new();
    };
    let kinds: Vec<&Summary> =
        comparison.summaries.iter().filter(of_measure).filter(|one| one.kind.is_some()).collect();
    let mut said = match comparison.of(measure).collect::<Vec<&Difference>>()[..] {
        [one] => vec![of_one(comparison, one)],
        _ => vec![of_many(comparison, all)],
    };
    if let Some(each) = by_kind(comparison, measure) {
        said.push(each);
        let small = |one: &&Summary| one.geometric_mean_percent.abs() < comparison.worth_percent;
        if all.verdict == Verdict::NoDifference && kinds.iter().all(small) {
            said.push(format!(
                "No kind's mean change reaches the {} % that would be worth acting on.",
                significant_short(comparison.worth_percent)
            ));
        }
    }
    if all.questions > 1 {
        let judged = all.better + all.worse + all.no_difference;
        if judged > 0 {
            let [faster, slower] = measure.words();
            let untold = match all.questions - judged {
                0 => String::new(),
                untold => format!(", and {untold} more cannot be judged"),
            };
            said.push(format!(
                "Of {judged} points {} are {faster}, {} {slower}, {} show no difference{untold} (Holm's correction for looking at all of them).",
                all.better, all.worse, all.no_difference
            ));
        } else {
            said.push(
                "Each point has one value per side, so single points cannot be judged; the interval is that of the mean over the points."
                    .into(),
            );
        }
    }
    said
}

fn by_kind(comparison: &Comparison, measure: Measure) -> Option<String> {
    let kinds = comparison.summaries.iter().filter(|one| one.measure == measure);
    let each: Vec<String> = kinds
        .filter_map(|one| {
            Some(format!("{} {}", one.kind.as_ref()?, show_change(one.geometric_mean_percent)))
        })
        .collect();
    (!each.is_empty()).then(|| format!("By kind: {}.", each.join(", ")))
}

fn of_one(comparison: &Comparison, one: &Difference) -> String {
    let (a, b) = (&comparison.a, &comparison.b);
    let Some(interval) = one.interval_95_percent else {
        if one.measure == Measure::Duration {
            return format!(
                "{}, from single runs without a confidence interval: repeat them.",
                times(comparison, one)
            );
        }
        return format!(
            "{b} against {a}: {} in {}, from single runs without a confidence interval: repeat them.",
            show_change(one.change_percent),
            one.measure.heading()
        );
    };
    let in_turn = match comparison.method {
        Method::InTurn { blocks: 1 } => ", one block of four runs in turn".into(),
        Method::InTurn { blocks } => format!(", {blocks} blocks of four runs in turn"),
        Method::Apart => String::new(),
    };
    let more = match interval {
        [low, high] if low == high => {
            "exactly: a simulated machine gives the same every time".to_string()
        }
        _ => format!("95 % interval {}{in_turn}", show_change_range(interval)),
    };
    match one.verdict {
        Verdict::NoDifference => {
            let seen = would_show(one.detectable_percent);
            format!(
                "No difference between {b} and {a}: {} ({more}{seen}).",
                show_change(one.change_percent)
            )
        }
        _ if one.measure == Measure::Duration => format!("{} ({more}).", times(comparison, one)),
        Verdict::Changing => format!(
            "{b} against {a}: {}, but a rate changed during its measurement, which may be the whole difference. Measure again when it is steady.",
            show_change(one.change_percent)
        ),
        verdict => {
            format!("{b} is {} {a} ({more}).", than(one.change_percent, word(one.measure, verdict)))
        }
    }
}

fn times(comparison: &Comparison, one: &Difference) -> String {
    let (a, b) = (&comparison.a, &comparison.b);
    let [time_a, time_b] = [one.a, one.b].map(show_time);
    format!("{b} takes {time_b} in total, {a} {time_a}: {}", show_change(one.change_percent))
}

fn of_many(comparison: &Comparison, all: &Summary) -> String {
    let (a, b) = (&comparison.a, &comparison.b);
    let from = match all.interval_from {
        IntervalFrom::Runs => "",
        IntervalFrom::Questions => ", from the spread over the points",
    };
    let interval = match all.interval_95_percent {
        Some(interval) => format!("95 % interval {}{from}", show_change_range(interval)),
        None => "no interval".into(),
    };
    let mean = all.geometric_mean_percent;
    let points = format!("in the geometric mean over {} points", all.questions);
    match all.verdict {
        Verdict::NoDifference => {
            let seen = would_show(all.detectable_percent);
            format!(
                "No difference between {b} and {a}: {} {points} ({interval}{seen}).",
                show_change(mean)
            )
        }
        Verdict::Untold => {
            format!("{b} against {a}: {} {points} ({interval}).", show_change(mean))
        }
        Verdict::Changing => format!(
            "{b} against {a}: {} {points}, but the rate of each changed during its measurement, which may be the whole difference.",
            show_change(mean)
        ),
        verdict => {
            format!("{b} is {} {a} {points} ({interval}).", than(mean, word(all.measure, verdict)))
        }
    }
}

fn would_show(detectable_percent: Option<f64>) -> String {
    detectable_percent.filter(|seen| *seen > 0.0).map_or(String::new(), |seen| {
        format!("; a change of {} % would have been seen", significant_short(seen))
    })
}

fn short(all: &Summary) -> String {
    let interval = all
        .interval_95_percent
        .map_or(String::new(), |interval| format!(" ({})", show_change_range(interval)));
    match all.verdict {
        Verdict::NoDifference => {
            format!("shows no difference: {}{interval}", show_change(all.geometric_mean_percent))
        }
        Verdict::Untold => format!("{}, from single runs", show_change(all.geometric_mean_percent)),
        Verdict::Changing => {
            format!("{}, while the rate changed", show_change(all.geometric_mean_percent))
        }
        verdict => {
            let word = match (all.measure, verdict) {
                (measure, verdict) if measure == Measure::Cpu || measure.is_rate() => {
                    word(measure, verdict)
                }
                (_, Verdict::Better) => "shorter",
                _ => "longer",
            };
            format!("is {}{interval}", by(all.geometric_mean_percent, word))
        }
    }
}

fn word(measure: Measure, verdict: Verdict) -> &'static str {
    measure.words()[usize::from(verdict == Verdict::Worse)]
}

/// `13.2 % faster`, `554 times as fast`.
fn by(percent: f64, word: &str) -> String {
    match ShownChange::of(percent) {
        change @ ShownChange::Factor(_) => {
            format!("{} times as {}", change.number(), plain_form(word))
        }
        ShownChange::Percent(percent) => format!("{:.1} % {word}", percent.abs()),
    }
}

fn than(percent: f64, word: &str) -> String {
    let than = match ShownChange::of(percent) {
        ShownChange::Percent(_) => "than",
        ShownChange::Factor(_) => "as",
    };
    format!("{} {than}", by(percent, word))
}

fn plain_form(word: &str) -> &str {
    match word {
        "faster" => "fast",
        "slower" => "slow",
        "longer" => "long",
        "more" => "much",
        other => other,
    }
}

fn significant_short(value: f64) -> String {
    let text = significant(value, 2);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}
