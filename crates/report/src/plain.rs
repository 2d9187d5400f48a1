//! A plain program's rates, whether it needs a change, and which rules hold. In sentences, the same
//! in every output.

use crate::format::{plus_minus, rate};
use machine::units::show_size;
use results::{Goal, PlainRate, Rule, RuleState};
use unicode_width::UnicodeWidthStr;
use workload::OpKind;

/// A line per operation: `read  100 % of the peak with 64 KiB (125 MiB/s ± 0.3 %), 97 % with 4 KiB
/// (121 MiB/s ± 1.0 %)`. If `room` columns are too few, drops the intervals, then the reference of
/// the share.
pub(crate) fn rates(all: &[PlainRate], room: usize) -> Vec<String> {
    let line = |op: OpKind| {
        let of_op: Vec<&PlainRate> = all.iter().filter(|one| one.op == op).collect();
        let said = |spread: bool, whole: bool| {
            let parts: Vec<String> = of_op
                .iter()
                .enumerate()
                .map(|(at, one)| part(one, spread, whole && at == 0))
                .collect();
            format!("{:<5} {}", op.name(), parts.join(", "))
        };
        let lines = [said(true, true), said(false, true), said(false, false)];
        let fitting = lines.iter().find(|line| line.width() <= room).unwrap_or(&lines[2]);
        (!of_op.is_empty()).then(|| fitting.clone())
    };
    [OpKind::Read, OpKind::Write].into_iter().filter_map(line).collect()
}

/// `100 % of the peak with 64 KiB (125 MiB/s ± 0.3 %)`.
fn part(one: &PlainRate, spread: bool, whole: bool) -> String {
    let size = show_size(u64::from(one.request_bytes));
    let mut figure = rate(one.throughput_bytes_per_s);
    if let Some(spread) = plus_minus(one.throughput_bytes_per_s, one.interval_95).filter(|_| spread)
    {
        figure += &format!(" {spread}");
    }
    match one.share_of_peak {
        Some(share) => {
            let of = if whole { " of the peak" } else { "" };
            format!("{}{of} with {size} ({figure})", percent(share))
        }
        None => format!("{figure} with {size}"),
    }
}

/// In whole percent; small shares with one more digit.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// The cases that need no change: `reads of 64 KiB: a plain program already gets 97 % of the peak:
/// nothing to change`. Shorter if `room` columns are too few.
pub(crate) fn enough(all: &[PlainRate], room: usize) -> Vec<String> {
    // Operation, sizes that reach the goal, minimum and maximum share.
    let mut groups: Vec<(Goal, String, [f64; 2])> = Vec::new();
    for op in [OpKind::Read, OpKind::Write] {
        let of_op: Vec<&PlainRate> = all.iter().filter(|one| one.op == op).collect();
        let Some(goal) = [Goal::NinetyPercent, Goal::Half]
            .into_iter()
            .find(|goal| reach(&of_op, *goal).next().is_some())
        else {
            continue;
        };
        let reached: Vec<&PlainRate> = reach(&of_op, goal).collect();
        let every = reached.len() == of_op.len();
        let sizes: Vec<String> =
            reached.iter().map(|one| show_size(u64::from(one.request_bytes))).collect();
        let subject =
            if every { format!("{op}s") } else { format!("{op}s of {}", sizes.join(" and ")) };
        let shares = reached.iter().filter_map(|one| one.share_of_peak);
        let range = shares
            .fold([f64::MAX, 0.0], |[low, high]: [f64; 2], one| [low.min(one), high.max(one)]);
        match groups.last_mut() {
            Some((known, words, [low, high])) if *known == goal && every && *words == "reads" => {
                (*low, *high) = (low.min(range[0]), high.max(range[1]));
                *words = "reads and writes".into();
            }
            _ => groups.push((goal, subject, range)),
        }
    }
    let said = |(goal, subject, [low, high]): (Goal, String, [f64; 2])| {
        let [low, high] = [low, high].map(percent);
        let share =
            if low == high { low } else { format!("{} to {high}", low.trim_end_matches(" %")) };
        let ending = if goal == Goal::Half {
            "more than half without a change"
        } else {
            "nothing to change"
        };
        let whole =
            format!("{subject}: a plain program already gets {share} of the peak: {ending}");
        if whole.width() <= room {
            whole
        } else {
            format!("plain {subject} get {share} of the peak: {ending}")
        }
    };
    groups.into_iter().map(said).collect()
}

fn reach<'a>(all: &'a [&PlainRate], goal: Goal) -> impl Iterator<Item = &'a PlainRate> {
    let enough =
        move |one: &&PlainRate| one.reaches.is_some_and(|reached| reached.share() >= goal.share());
    all.iter().copied().filter(enough)
}

/// The number of rules that hold, and the broken ones: `4 of 6 hold; broken: preallocate files`.
/// `None` if none could be judged. With `named`, the broken ones are listed.
pub(crate) fn rules(all: &[Rule], named: bool) -> Option<String> {
    let of = |state: RuleState| all.iter().filter(move |one| one.state == state);
    let (held, broken) = (of(RuleState::Held).count(), of(RuleState::Broken).count());
    if held + broken == 0 {
        return None;
    }
    let names: Vec<&str> = of(RuleState::Broken).map(|one| one.rule.as_str()).collect();
    Some(match broken {
        0 if held == 1 => "the one that applies holds".into(),
        0 => format!("all {held} that apply hold"),
        _ if named => format!("{held} of {} hold; broken: {}", held + broken, names.join("; ")),
        _ => format!("{held} of {} hold; broken: {broken}, named in the report", held + broken),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(op: OpKind, request_bytes: u32, share: f64) -> PlainRate {
        let rate = share * 125.0 * f64::from(1 << 20);
        let reached = |goal: &Goal| share >= goal.share();
        PlainRate {
            op,
            request_bytes,
            throughput_bytes_per_s: rate,
            interval_95: Some([rate * 0.98, rate * 1.02]),
            share_of_peak: Some(share),
            reaches: [Goal::NinetyPercent, Goal::Half].into_iter().find(reached),
            point: 0,
        }
    }

    #[test]
    fn a_plain_programs_rates_are_a_line_for_each_operation() {
        let all = [
            plain(OpKind::Read, 65_536, 1.0),
            plain(OpKind::Read, 4096, 0.6),
            plain(OpKind::Write, 65_536, 0.05),
        ];
        assert_eq!(
            rates(&all, 92),
            [
                "read  100 % of the peak with 64 KiB (125 MiB/s ± 2.0 %), 60 % with 4 KiB (75 MiB/s ± 2.0 %)",
                "write 5.0 % of the peak with 64 KiB (6.25 MiB/s ± 2.0 %)",
            ]
        );
        assert_eq!(
            rates(&all, 80)[0],
            "read  100 % of the peak with 64 KiB (125 MiB/s), 60 % with 4 KiB (75 MiB/s)"
        );
        assert_eq!(
            rates(&all, 72)[0],
            "read  100 % with 64 KiB (125 MiB/s), 60 % with 4 KiB (75 MiB/s)"
        );
    }

    #[test]
    fn a_plain_program_that_gets_the_peak_needs_no_change() {
        let with = |shares: [f64; 4], room: usize| {
            let [a, b, c, d] = shares;
            enough(
                &[
                    plain(OpKind::Read, 65_536, a),
                    plain(OpKind::Read, 4096, b),
                    plain(OpKind::Write, 65_536, c),
                    plain(OpKind::Write, 4096, d),
                ],
                room,
            )
        };
        let all = "reads and writes: a plain program already gets 97 to 100 % of the peak: nothing to change";
        assert_eq!(with([1.0, 0.98, 0.99, 0.97], 92), [all]);
        assert_eq!(
            with([0.95, 0.3, 0.6, 0.55], 92),
            [
                "reads of 64 KiB: a plain program already gets 95 % of the peak: nothing to change",
                "writes: a plain program already gets 55 to 60 % of the peak: more than half without a change",
            ]
        );
        let short = "plain reads and writes get 97 to 100 % of the peak: nothing to change";
        assert_eq!(with([1.0, 0.98, 0.99, 0.97], 72), [short]);
        assert!(with([0.3; 4], 92).is_empty());
    }

    #[test]
    fn the_broken_rules_are_named() {
        let rule = |rule: &str, state| Rule { rule: rule.into(), state, evidence: String::new() };
        let all = [
            rule("align partitions", RuleState::Held),
            rule("preallocate files", RuleState::Broken),
            rule("enough buses and links", RuleState::NotApplicable),
        ];
        assert_eq!(rules(&all, true).as_deref(), Some("1 of 2 hold; broken: preallocate files"));
        assert_eq!(
            rules(&all, false).as_deref(),
            Some("1 of 2 hold; broken: 1, named in the report")
        );
        assert_eq!(rules(&all[..1], true).as_deref(), Some("the one that applies holds"));
        assert_eq!(rules(&all[2..], true), None);
    }
}
