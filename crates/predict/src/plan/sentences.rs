use super::{Limit, PlanDocument, Prediction};
use machine::CacheState;
use machine::units::{show_time, significant};

/// Smaller differences get no sentence.
const SAME: f64 = 0.01;
/// A larger share of the time less is given as a factor.
const MANY_TIMES_LESS: f64 = 0.9;

pub(super) fn sentences(document: &PlanDocument) -> Vec<String> {
    let all = &document.predictions;
    let mut said = Vec::new();
    for pair in all.windows(2) {
        let same_kind = pair[0].source.is_some() && pair[0].source == pair[1].source;
        if let (true, Some(iops), Some(before)) = (same_kind, pair[1].iops, pair[0].iops)
            && iops > before
        {
            said.push(format!(
                "{} is enough: more IOPS gain less than 2 %, and {before:.0} IOPS take {} % longer.",
                pair[1].name,
                significant((pair[0].elapsed_s / pair[1].elapsed_s - 1.0) * 100.0, 2)
            ));
        }
    }
    let mut by_time: Vec<&Prediction> = all.iter().collect();
    by_time.sort_by(|a, b| a.elapsed_s.total_cmp(&b.elapsed_s));
    if let [first, second, ..] = by_time.as_slice() {
        let gain = 1.0 - first.elapsed_s / second.elapsed_s;
        said.push(if gain < SAME {
            format!("{} and {} finish within 1 % of each other.", first.name, second.name)
        } else {
            let less = match gain {
                // "100 % less time" would mean no time.
                much if much > MANY_TIMES_LESS => format!(
                    "{} is {} times as fast as",
                    first.name,
                    significant(second.elapsed_s / first.elapsed_s, 3)
                ),
                little => format!(
                    "{} is fastest: it takes {} % less time than",
                    first.name,
                    significant(little * 100.0, 2)
                ),
            };
            format!("{less} {}.", second.name)
        });
    }
    for one in all {
        let what = match &one.limit {
            Limit::Part { name, busy_percent } => {
                format!("the limit is the {name}, {} % busy", significant(*busy_percent, 2))
            }
            Limit::Latency => {
                "requests wait for the volume's latency: more IOPS do not help".to_owned()
            }
            Limit::OwnPauses => "the application's own pauses take most of the time".to_owned(),
        };
        said.push(format!("{}: {what}.", one.name));
    }
    let priced = all.iter().filter(|one| one.meets_goals != Some(false));
    let cheapest = priced
        .filter_map(|one| Some((one.price_per_month?, one)))
        .min_by(|(a, _), (b, _)| a.total_cmp(b));
    if let Some((price, one)) = cheapest {
        let keeps = if document.goals.is_empty() { "" } else { " that meets every goal" };
        let price = significant(price, 4);
        said.push(format!("The cheapest{keeps} is {}: {price} a month.", one.name));
    } else if !document.goals.is_empty() && all.iter().all(|one| one.meets_goals == Some(false)) {
        let goals = document
            .goals
            .iter()
            .map(|goal| format!("p99 of {} at most {}", goal.class, show_time(goal.p99_ns as f64)));
        said.push(format!("None meets every goal ({}).", goals.collect::<Vec<_>>().join(", ")));
    }
    if let Some(hits) = document.read_hits {
        let began = if document.cache == CacheState::Warm { "warm" } else { "cold" };
        said.push(format!(
            "{} % of the bytes read came from the page cache in the recording: each prediction begins with a {began} one.",
            significant(hits * 100.0, 2)
        ));
    }
    said.push(match document.model_error_percent {
        Some(error) => {
            let classes = document.model_p99_errors.iter().map(|one| {
                format!(", that of the p99 of {} by {} %", one.class, significant(one.percent, 2))
            });
            format!(
                "On the machine of the recording the same model's time is off by {} %{}.",
                significant(error, 2),
                classes.collect::<String>()
            )
        }
        None => "The model's error is not known: name the machine of the recording with --recorded-on (a machine file fitted to a study of it).".to_owned(),
    });
    said
}
