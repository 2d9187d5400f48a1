//! A plain program's rates.

use crate::format::{plus_minus, rate};
use machine::units::show_size;
use results::{PlainRate, Rule, RuleState};
use workload::OpKind;

pub(crate) fn rates(all: &[PlainRate]) -> Vec<String> {
    let line = |op: OpKind| {
        let of_op = all.iter().filter(|one| one.op == op).enumerate();
        let parts: Vec<String> = of_op.map(|(place, one)| part(one, place == 0)).collect();
        (!parts.is_empty()).then(|| format!("{:<5} {}", op.name(), parts.join(", ")))
    };
    [OpKind::Read, OpKind::Write].into_iter().filter_map(line).collect()
}

fn part(one: &PlainRate, whole: bool) -> String {
    let size = show_size(u64::from(one.request_bytes));
    let mut figure = rate(one.throughput_bytes_per_s);
    if let Some(spread) = plus_minus(one.throughput_bytes_per_s, one.interval_95) {
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

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

pub(crate) fn rules(all: &[Rule]) -> Option<String> {
    let of = |state: RuleState| all.iter().filter(move |one| one.state == state);
    let (held, broken) = (of(RuleState::Held).count(), of(RuleState::Broken).count());
    if held + broken == 0 {
        return None;
    }
    let names: Vec<&str> = of(RuleState::Broken).map(|one| one.rule.as_str()).collect();
    Some(match broken {
        0 if held == 1 => "the one that applies holds".into(),
        0 => format!("all {held} that apply hold"),
        _ => format!("{held} of {} hold; broken: {}", held + broken, names.join("; ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(op: OpKind, request_bytes: u32, share: f64) -> PlainRate {
        let rate = share * 125.0 * f64::from(1 << 20);
        PlainRate {
            op,
            request_bytes,
            throughput_bytes_per_s: rate,
            interval_95: Some([rate * 0.98, rate * 1.02]),
            share_of_peak: Some(share),
            reaches: None,
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
            rates(&all),
            [
                "read  100 % of the peak with 64 KiB (125 MiB/s ± 2.0 %), 60 % with 4 KiB (75 MiB/s ± 2.0 %)",
                "write 5.0 % of the peak with 64 KiB (6.25 MiB/s ± 2.0 %)",
            ]
        );
    }

    #[test]
    fn the_broken_rules_are_named() {
        let rule = |rule: &str, state| Rule { rule: rule.into(), state, evidence: String::new() };
        let all = [
            rule("align partitions", RuleState::Held),
            rule("preallocate files", RuleState::Broken),
            rule("enough buses and links", RuleState::NotApplicable),
        ];
        assert_eq!(rules(&all).as_deref(), Some("1 of 2 hold; broken: preallocate files"));
        assert_eq!(rules(&all[..1]).as_deref(), Some("the one that applies holds"));
        assert_eq!(rules(&all[2..]), None);
    }
}
