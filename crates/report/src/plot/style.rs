//! The colour, dashes and marker of each curve.

use super::colour::{self, Pair};
use super::scene::DASHES;
use crate::format::family;

pub(super) struct Style {
    pub pair: Pair,
    pub dash: usize,
    pub shape: usize,
}

/// An ordered family gets a ramp of colours. Names of two parts (`written, depth 8`) take colour
/// from the first and dashes from the second.
pub(super) fn styles(names: &[String]) -> Vec<Style> {
    let count = names.len();
    let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
    if family(&borrowed).is_some() && count > 2 {
        return (0..count)
            .map(|place| Style {
                pair: colour::of_curve(place, count, true),
                dash: 0,
                shape: place,
            })
            .collect();
    }
    if let Some((parts, firsts)) = two_parts(&borrowed) {
        return parts
            .into_iter()
            .map(|(first, second)| Style {
                pair: colour::of_curve(first, firsts, false),
                dash: second,
                shape: first + second * firsts,
            })
            .collect();
    }
    let each = |place: usize| Style {
        pair: colour::of_curve(place, count, false),
        dash: place / colour::MAX,
        shape: place + place / colour::MAX,
    };
    (0..count).map(each).collect()
}

/// For each name the index of its first part and of its second, and the number of first parts;
/// `None` if the names have no two parts.
fn two_parts(names: &[&str]) -> Option<(Vec<(usize, usize)>, usize)> {
    let (mut firsts, mut seconds): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let index = |known: &[&str], part: &str| known.iter().position(|other| *other == part);
    let mut parts = Vec::new();
    for name in names {
        let (first, second) = name.split_once(", ")?;
        for (known, part) in [(&mut firsts, first), (&mut seconds, second)] {
            if index(known, part).is_none() {
                known.push(part);
            }
        }
        parts.push((index(&firsts, first)?, index(&seconds, second)?));
    }
    let repeats = |parts: &[(usize, usize)]| {
        parts.iter().enumerate().any(|(place, part)| parts[..place].contains(part))
    };
    let fits = (2..=colour::MAX).contains(&firsts.len())
        && (2..=DASHES.len()).contains(&seconds.len())
        && !repeats(&parts);
    fits.then_some((parts, firsts.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Vec<(String, usize)> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
        styles(&names).into_iter().map(|style| (style.pair.light, style.dash)).collect()
    }

    #[test]
    fn names_of_two_parts_share_colours_and_dashes() {
        let styles =
            of(&["written, depth 1", "written, depth 8", "extend, depth 1", "extend, depth 8"]);
        assert!(
            styles[0].0 == styles[1].0 && styles[2].0 == styles[3].0 && styles[0].0 != styles[2].0
        );
        assert!(
            styles[0].1 == styles[2].1 && styles[1].1 == styles[3].1 && styles[0].1 != styles[1].1
        );
    }

    #[test]
    fn curves_never_share_a_style() {
        let many: Vec<String> =
            (0..18).map(|place| format!("name {}", char::from(b'a' + place))).collect();
        for names in [
            vec!["depth 1", "depth 8", "depth 32"],
            vec!["read", "write", "write-through"],
            many.iter().map(String::as_str).collect(),
        ] {
            let styles = of(&names);
            assert!(
                (1..styles.len()).all(|place| !styles[..place].contains(&styles[place])),
                "{styles:?}"
            );
        }
    }
}
