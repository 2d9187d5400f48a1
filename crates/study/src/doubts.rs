//! Doubts about the best rates, those of one kind as one.

use results::{Doubt, Point};
use workload::OpKind;

/// The warnings of the best rates: those that differ only in their numbers become one, with the
/// number of points that have such a warning.
pub(crate) fn of_peaks<'a>(
    warnings: impl IntoIterator<Item = (OpKind, &'a str)>,
    points: &[Point],
) -> Vec<String> {
    let mut kinds: Vec<(Doubt, Vec<OpKind>)> = Vec::new();
    for (op, warning) in warnings {
        let doubt = Doubt::new(warning);
        match kinds.iter_mut().find(|(known, _)| known.is_like(&doubt)) {
            Some((known, ops)) => {
                known.merge(&doubt);
                if !ops.contains(&op) {
                    ops.push(op);
                }
            }
            None => kinds.push((doubt, vec![op])),
        }
    }
    kinds.iter().map(|(doubt, ops)| said(doubt, ops, points)).collect()
}

fn said(doubt: &Doubt, ops: &[OpKind], points: &[Point]) -> String {
    let names: Vec<&str> = ops.iter().map(|op| op.name()).collect();
    let text = format!("the best {}: {doubt}", names.join(" and "));
    if doubt.count() == 1 {
        return text;
    }
    let like = |warning: &String| Doubt::new(warning).is_like(doubt);
    let warned = |point: &&Point| {
        point.numbers.as_ref().is_some_and(|numbers| numbers.warnings.iter().any(like))
    };
    format!("{text} (at {} of {} points)", points.iter().filter(warned).count(), points.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_reads_and_writes_that_differ_only_in_a_number_are_one() {
        let busy =
            |number: &str| format!("other programs kept {number} processors busy: stop them");
        let all = [busy("1.5"), busy("1.6"), busy("2.0"), "nvme0n1 was 70 % busy".to_owned()];
        let mut warnings: Vec<(OpKind, &str)> =
            all.iter().map(|one| (OpKind::Read, one.as_str())).collect();
        warnings.push((OpKind::Write, &all[1]));
        assert_eq!(
            of_peaks(warnings, &[]),
            [
                "the best read and write: other programs kept 1.5 to 2.0 processors busy: stop them (at 0 of 0 points)",
                "the best read: nvme0n1 was 70 % busy",
            ]
        );
    }
}
