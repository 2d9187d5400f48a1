//! Warnings that differ only in their numbers are one doubt, with the range of each number.

use std::fmt;

/// Warnings of one kind.
#[derive(Debug, Clone)]
pub struct Doubt {
    words: Vec<String>,
    ranges: Vec<[String; 2]>,
    count: usize,
}

impl Doubt {
    /// Splits a warning into words and numbers. A number within a name (`nvme0n1`,
    /// `/sys/block/sda1`) belongs to the words; `2 to 3` is a range.
    pub fn new(warning: &str) -> Doubt {
        let (mut words, mut ranges) = (vec![String::new()], Vec::<[String; 2]>::new());
        for word in warning.split_inclusive(' ') {
            let number =
                word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '/');
            let last = words.last_mut().expect("there is always one");
            let finite = value(number).is_some_and(f64::is_finite);
            if !finite || !number.starts_with(|c: char| c.is_ascii_digit()) {
                last.push_str(word);
                continue;
            }
            let (before, after) = word.split_once(number).unwrap_or((word, ""));
            match ranges.last_mut() {
                Some(range) if last == " to " && before.is_empty() && range[0] == range[1] => {
                    range[1] = number.to_owned();
                    *last = after.to_owned();
                }
                _ => {
                    last.push_str(before);
                    ranges.push([number.to_owned(), number.to_owned()]);
                    words.push(after.to_owned());
                }
            }
        }
        Doubt { words, ranges, count: 1 }
    }

    /// Whether both differ only in their numbers.
    pub fn is_like(&self, other: &Doubt) -> bool {
        self.words == other.words
    }

    /// The number of warnings merged into it.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Widens the ranges by those of another doubt of its kind.
    pub fn merge(&mut self, other: &Doubt) {
        let value = |text: &str| value(text).unwrap_or(0.0);
        for ([min, max], [low, high]) in self.ranges.iter_mut().zip(&other.ranges) {
            if value(low) < value(min) {
                min.clone_from(low);
            }
            if value(high) > value(max) {
                max.clone_from(high);
            }
        }
        self.count += other.count;
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words[0])?;
        for ([min, max], words) in self.ranges.iter().zip(&self.words[1..]) {
            f.write_str(min)?;
            if min != max {
                write!(f, " to {max}")?;
            }
            f.write_str(words)?;
        }
        Ok(())
    }
}

/// The value of a number as it is written: `1.5`, `12,600`.
fn value(text: &str) -> Option<f64> {
    text.replace(',', "").parse().ok()
}

/// A doubt of each kind of warning, in the order of their first.
pub fn merged<'a>(warnings: impl IntoIterator<Item = &'a str>) -> Vec<Doubt> {
    let mut doubts: Vec<Doubt> = Vec::new();
    for doubt in warnings.into_iter().map(Doubt::new) {
        match doubts.iter_mut().find(|known| known.is_like(&doubt)) {
            Some(known) => known.merge(&doubt),
            None => doubts.push(doubt),
        }
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(warnings: &[&str]) -> Vec<String> {
        merged(warnings.iter().copied()).iter().map(Doubt::to_string).collect()
    }

    #[test]
    fn warnings_that_differ_only_in_a_number_are_one() {
        let busy =
            |number: &str| format!("other programs kept {number} processors busy: stop them");
        let all = [
            busy("1.5"),
            "nvme0n1 was 70 % busy".to_owned(),
            busy("2.0"),
            busy("1.7 to 1.9"),
            busy("1.1"),
        ];
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        assert_eq!(said(&all), [busy("1.1 to 2.0"), "nvme0n1 was 70 % busy".to_owned()]);
        assert_eq!(merged(all)[0].count(), 4);
        assert_eq!(
            said(&["9 of 10", "10 of 10", "9 of 10"]),
            ["9 to 10 of 10"],
            "by value, not by letters"
        );
        assert_eq!(said(&["9500 MiB/s", "12,600 MiB/s"]), ["9500 to 12,600 MiB/s"]);
    }

    #[test]
    fn a_number_in_a_name_or_between_other_words_makes_another_kind() {
        assert_eq!(
            said(&["sda 1 was slow", "sdb 1 was slow", "/dev/sd1 was slow", "/dev/sd2 was slow"])
                .len(),
            4
        );
        let text = "held (at 12 %, not 3.5, of nvme0n1)";
        assert_eq!(said(&[text]), [text]);
        assert_eq!(
            said(&[text, "held (at 14 %, not 3.1, of nvme0n1)"]),
            ["held (at 12 to 14 %, not 3.1 to 3.5, of nvme0n1)"]
        );
    }
}
