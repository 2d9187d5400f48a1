//! Doubts of one kind, folded into one: warnings that differ only in their numbers.

use results::Point;
use workload::OpKind;

/// A warning of a best rate, and of others like it.
struct Kind {
    /// The words between the numbers.
    words: Vec<String>,
    /// The numbers as they were written, of each warning.
    numbers: Vec<Vec<String>>,
    ops: Vec<OpKind>,
}

/// The warnings of the best rates, those of one kind as one: with the range of their numbers, and the number of points that have such.
pub(crate) fn of_peaks<'a>(warnings: impl IntoIterator<Item = (OpKind, &'a str)>, points: &[Point]) -> Vec<String> {
    let mut kinds: Vec<Kind> = Vec::new();
    for (op, warning) in warnings {
        let (words, numbers) = split(warning);
        let kind = match kinds.iter().position(|kind| kind.words == words) {
            Some(known) => &mut kinds[known],
            None => {
                kinds.push(Kind { words, numbers: Vec::new(), ops: Vec::new() });
                kinds.last_mut().expect("it was pushed")
            }
        };
        kind.numbers.push(numbers);
        if !kind.ops.contains(&op) {
            kind.ops.push(op);
        }
    }
    kinds.iter().map(|kind| said(kind, points)).collect()
}

/// The words around the numbers of a text, and the numbers. A number within a name (`nvme0n1`, `/sys/block/sda1`) is none.
fn split(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut words, mut numbers) = (vec![String::new()], Vec::new());
    for word in text.split_inclusive(' ') {
        let number = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '/');
        let last = words.last_mut().expect("there is always one");
        if number.parse::<f64>().is_ok_and(f64::is_finite) && number.starts_with(|c: char| c.is_ascii_digit()) {
            let (before, after) = word.split_once(number).unwrap_or((word, ""));
            last.push_str(before);
            numbers.push(number.to_owned());
            words.push(after.to_owned());
        } else {
            last.push_str(word);
        }
    }
    (words, numbers)
}

fn said(kind: &Kind, points: &[Point]) -> String {
    let mut text = kind.words[0].clone();
    for (place, words) in kind.words[1..].iter().enumerate() {
        let value = |one: &&str| one.parse::<f64>().unwrap_or(0.0);
        let all = || kind.numbers.iter().map(|numbers| numbers[place].as_str());
        let least = all().min_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or_default();
        let most = all().max_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or_default();
        text += &if least == most { least.to_owned() } else { format!("{least} to {most}") };
        text += words;
    }
    let ops: Vec<&str> = kind.ops.iter().map(|op| op.name()).collect();
    let text = format!("the best {}: {text}", ops.join(" and "));
    if kind.numbers.len() == kind.ops.len() && kind.ops.len() == 1 {
        return text;
    }
    let like = |warning: &String| split(warning).0 == kind.words;
    let warned = |point: &&Point| point.numbers.as_ref().is_some_and(|numbers| numbers.warnings.iter().any(like));
    format!("{text} (so at {} of {} points)", points.iter().filter(warned).count(), points.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_that_differ_only_in_a_number_are_one() {
        let busy = |number: &str| format!("other programs kept {number} processors busy: stop them");
        let all = [busy("1.5"), busy("1.6"), busy("2.0"), "nvme0n1 was 70 % busy".to_owned()];
        let mut warnings: Vec<(OpKind, &str)> = all.iter().map(|one| (OpKind::Read, one.as_str())).collect();
        warnings.push((OpKind::Write, &all[1]));
        assert_eq!(
            of_peaks(warnings, &[]),
            [
                "the best read and write: other programs kept 1.5 to 2.0 processors busy: stop them (so at 0 of 0 points)",
                "the best read: nvme0n1 was 70 % busy",
            ]
        );
    }

    #[test]
    fn names_and_other_words_are_no_numbers() {
        let all = ["sda 1 was slow", "sdb 1 was slow", "/dev/sd1 was slow", "/dev/sd2 was slow"];
        assert_eq!(of_peaks(all.map(|one| (OpKind::Read, one)), &[]).len(), 4);
        let (words, numbers) = split("held (at 12 %, not 3.5, of nvme0n1)");
        assert_eq!(
            (words.concat().as_str(), numbers),
            ("held (at  %, not , of nvme0n1)", vec!["12".into(), "3.5".into()])
        );
    }
}
