//! Which colour, dashes and marker a curve has.

use super::colour::{self, Pair};
use super::scene::DASHES;
use crate::words::family;

/// How a curve looks.
pub(super) struct Look {
    pub pair: Pair,
    pub dash: usize,
    pub shape: usize,
}

/// Looks of curves by their names: a ramp for a family in an order; for names of two parts (`written, depth 8`) the colour of the first part and
/// the dashes of the second; else a colour each, and other dashes when the colours begin again.
pub(super) fn looks(names: &[String]) -> Vec<Look> {
    let count = names.len();
    let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
    if family(&borrowed).is_some() && count > 2 {
        return (0..count).map(|place| Look { pair: colour::of_curve(place, count, true), dash: 0, shape: place }).collect();
    }
    if let Some((parts, firsts)) = two_parts(&borrowed) {
        return parts
            .into_iter()
            .map(|(first, second)| Look { pair: colour::of_curve(first, firsts, false), dash: second, shape: first + second * firsts })
            .collect();
    }
    let each = |place: usize| Look {
        pair: colour::of_curve(place, count, false),
        dash: place / colour::MOST,
        shape: place + place / colour::MOST,
    };
    (0..count).map(each).collect()
}

/// For each name which first part it has and which second, and how many first parts there are; `None` where names are not made so.
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
    let repeats = |parts: &[(usize, usize)]| parts.iter().enumerate().any(|(place, part)| parts[..place].contains(part));
    let fits = (2..=colour::MOST).contains(&firsts.len()) && (2..=DASHES.len()).contains(&seconds.len()) && !repeats(&parts);
    fits.then_some((parts, firsts.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Vec<(String, usize)> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
        looks(&names).into_iter().map(|look| (look.pair.light, look.dash)).collect()
    }

    #[test]
    fn names_of_two_parts_share_colours_and_dashes() {
        let looks = of(&["written, depth 1", "written, depth 8", "extend, depth 1", "extend, depth 8"]);
        assert!(looks[0].0 == looks[1].0 && looks[2].0 == looks[3].0 && looks[0].0 != looks[2].0);
        assert!(looks[0].1 == looks[2].1 && looks[1].1 == looks[3].1 && looks[0].1 != looks[1].1);
    }

    #[test]
    fn curves_never_look_the_same() {
        let many: Vec<String> = (0..18).map(|place| format!("name {}", char::from(b'a' + place))).collect();
        for names in
            [vec!["depth 1", "depth 8", "depth 32"], vec!["read", "write", "write-through"], many.iter().map(String::as_str).collect()]
        {
            let looks = of(&names);
            assert!((1..looks.len()).all(|place| !looks[..place].contains(&looks[place])), "{looks:?}");
        }
    }
}
