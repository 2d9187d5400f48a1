//! Keeps figures as values, so that warnings of one kind can be merged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WarningFigure")]
pub struct Figure {
    value: f64,
    /// The value as it is shown, with its unit if that depends on the value.
    shown: String,
}

impl Figure {
    pub fn new(value: f64, shown: impl Into<String>) -> Figure {
        // JSON has no other numbers.
        Figure { value: if value.is_finite() { value } else { 0.0 }, shown: shown.into() }
    }

    pub fn rounded(value: f64, decimals: usize) -> Figure {
        Figure::new(value, format!("{value:.decimals$}"))
    }

    pub fn count(value: u64) -> Figure {
        Figure::new(value as f64, value.to_string())
    }
}

/// A sentence that warns of something, with its figures apart.
///
/// ```
/// use machine::{Figure, Warning};
///
/// let busy = |share| Warning::of("the disk was {} % busy", [Figure::rounded(share, 0)]);
/// let mut warning = busy(70.0);
/// warning.merge(&busy(64.0));
/// assert_eq!(warning.to_string(), "the disk was 64 to 70 % busy");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// The words around the figures: one part more than there are figures.
    words: Vec<String>,
    /// The lowest and the highest value of each figure.
    figures: Vec<[Figure; 2]>,
}

impl Warning {
    /// Puts figures at each `{}` in `words`.
    ///
    /// # Panics
    /// The numbers of places and figures differ.
    pub fn of<const N: usize>(words: &'static str, figures: [Figure; N]) -> Warning {
        let words: Vec<String> = words.split("{}").map(str::to_owned).collect();
        assert_eq!(words.len(), N + 1, "a place for each figure in {words:?}");
        let figures = figures.map(|one| [one.clone(), one]);
        Warning { words, figures: figures.into() }
    }

    #[must_use]
    pub fn then(mut self, more: impl Into<Warning>) -> Warning {
        let mut more = more.into();
        let first = more.words.remove(0);
        self.words.last_mut().expect("never empty").push_str(&first);
        self.words.append(&mut more.words);
        self.figures.append(&mut more.figures);
        self
    }

    /// Returns whether only the figures differ.
    pub fn is_like(&self, other: &Warning) -> bool {
        self.words == other.words
    }

    /// Widens the ranges.
    pub fn merge(&mut self, other: &Warning) {
        for ([min, max], [low, high]) in self.figures.iter_mut().zip(&other.figures) {
            if low.value < min.value {
                min.clone_from(low);
            }
            if high.value > max.value {
                max.clone_from(high);
            }
        }
    }

    /// Returns one warning of each kind, in order of first appearance, with the kind's count.
    pub fn merged<'a>(all: impl IntoIterator<Item = &'a Warning>) -> Vec<(Warning, usize)> {
        let mut kinds: Vec<(Warning, usize)> = Vec::new();
        for warning in all {
            match kinds.iter_mut().find(|(known, _)| known.is_like(warning)) {
                Some((known, count)) => {
                    known.merge(warning);
                    *count += 1;
                }
                None => kinds.push((warning.clone(), 1)),
            }
        }
        kinds
    }
}

impl From<String> for Warning {
    fn from(words: String) -> Warning {
        Warning { words: vec![words], figures: Vec::new() }
    }
}

impl From<&str> for Warning {
    fn from(words: &str) -> Warning {
        words.to_owned().into()
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A document from elsewhere may lack words.
        f.write_str(self.words.first().map_or("", String::as_str))?;
        for ([min, max], words) in self.figures.iter().zip(self.words.iter().skip(1)) {
            f.write_str(&min.shown)?;
            if min.shown != max.shown {
                write!(f, " to {}", max.shown)?;
            }
            f.write_str(words)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said<const N: usize>(warnings: [Warning; N]) -> Vec<String> {
        Warning::merged(&warnings).iter().map(|(one, _)| one.to_string()).collect()
    }

    #[test]
    fn warnings_that_differ_only_in_a_figure_are_one() {
        let busy = |value| {
            Warning::of("other programs kept {} processors busy", [Figure::rounded(value, 1)])
        };
        let device = || Warning::from("nvme0n1 was busy".to_owned());
        let all = [busy(1.5), device(), busy(2.0), busy(1.1)];
        assert_eq!(Warning::merged(&all)[0].1, 3);
        assert_eq!(
            said(all),
            ["other programs kept 1.1 to 2.0 processors busy", "nvme0n1 was busy"]
        );
        let of = |of: u64| Warning::of("{} of {}", [Figure::count(of), Figure::count(10)]);
        assert_eq!(said([of(9), of(10), of(9)]), ["9 to 10 of 10"], "by value, not by letters");
    }

    #[test]
    fn other_words_are_another_kind() {
        let named = |name: &str| Warning::from(format!("{name} was slow"));
        assert_eq!(said([named("sda1"), named("sda2"), named("sda1")]).len(), 2);
    }

    #[test]
    fn sentences_join_and_survive_json() {
        let late = |value: f64| {
            Warning::of("only {} % completed", [Figure::rounded(value, 0)])
                .then(Warning::of(", and {} more", [Figure::count(value as u64)]))
                .then("; run it longer")
        };
        let mut one = late(3.0);
        one.merge(&serde_json::from_str(&serde_json::to_string(&late(2.0)).unwrap()).unwrap());
        assert_eq!(one.to_string(), "only 2 to 3 % completed, and 2 to 3 more; run it longer");
        let empty: Warning = serde_json::from_str(r#"{"words": [], "figures": []}"#).unwrap();
        assert_eq!(empty.to_string(), "");
        assert!(serde_json::to_string(&late(f64::NAN)).unwrap().contains("0.0"));
    }
}
