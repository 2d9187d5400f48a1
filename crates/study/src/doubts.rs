//! Doubts about the best rates, one per kind.

use machine::Warning;
use results::{Numbers, Point};
use workload::OpKind;

struct Kind {
    warning: Warning,
    count: usize,
    ops: Vec<OpKind>,
}

pub(crate) fn of_peaks<'a>(
    warnings: impl IntoIterator<Item = (OpKind, &'a Warning)>,
    points: &[Point],
) -> Vec<String> {
    let mut kinds: Vec<Kind> = Vec::new();
    for (op, warning) in warnings {
        match kinds.iter_mut().find(|known| known.warning.is_like(warning)) {
            Some(known) => {
                known.warning.merge(warning);
                known.count += 1;
                if !known.ops.contains(&op) {
                    known.ops.push(op);
                }
            }
            None => kinds.push(Kind { warning: warning.clone(), count: 1, ops: vec![op] }),
        }
    }
    kinds.iter().map(|kind| said(kind, points)).collect()
}

fn said(Kind { warning, count, ops }: &Kind, points: &[Point]) -> String {
    let names: Vec<&str> = ops.iter().map(|op| op.name()).collect();
    let text = format!("the best {}: {warning}", names.join(" and "));
    if *count == 1 {
        return text;
    }
    let has = |numbers: &Numbers| numbers.doubts.iter().any(|one| one.is_like(warning));
    let warned = points.iter().filter(|point| point.numbers.as_ref().is_some_and(has)).count();
    format!("{text} (at {warned} of {} points)", points.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Figure;

    #[test]
    fn warnings_of_reads_and_writes_that_differ_only_in_a_figure_are_one() {
        let busy = |number| {
            let figures = [Figure::rounded(number, 1)];
            Warning::of("other programs kept {} processors busy: stop them", figures)
        };
        let all = [busy(1.5), busy(1.6), busy(2.0), Warning::from("nvme0n1 was busy")];
        let mut warnings: Vec<(OpKind, &Warning)> =
            all.iter().map(|one| (OpKind::Read, one)).collect();
        warnings.push((OpKind::Write, &all[1]));
        assert_eq!(
            of_peaks(warnings, &[]),
            [
                "the best read and write: other programs kept 1.5 to 2.0 processors busy: stop them (at 0 of 0 points)",
                "the best read: nvme0n1 was busy",
            ]
        );
    }
}
