//! Each curve's style.

use super::colour::{self, Pair};
use super::scene::DASHES;
use results::{CurveName, Series};

pub(super) struct Style {
    pub pair: Pair,
    pub dash: usize,
    pub shape: usize,
}

pub(super) fn styles(series: &[Series]) -> Vec<Style> {
    let count = series.len();
    let parts: Option<Vec<&CurveName>> = series.iter().map(|one| one.parts.as_ref()).collect();
    let ordered = parts
        .as_ref()
        .is_some_and(|all| all.iter().all(|one| one.order.is_some() && one.group == all[0].group));
    if ordered && count > 2 {
        return (0..count)
            .map(|place| Style {
                pair: colour::of_curve(place, count, true),
                dash: 0,
                shape: place,
            })
            .collect();
    }
    if let Some((places, groups)) = parts.and_then(|all| in_groups(&all)) {
        return places
            .into_iter()
            .map(|(group, variant)| Style {
                pair: colour::of_curve(group, groups, false),
                dash: variant,
                shape: group + variant * groups,
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

fn index<'a>(known: &mut Vec<&'a str>, part: &'a str) -> usize {
    known.iter().position(|other| *other == part).unwrap_or_else(|| {
        known.push(part);
        known.len() - 1
    })
}

/// Also returns the number of groups; `None` if a name has no group, or two would look the same.
fn in_groups(names: &[&CurveName]) -> Option<(Vec<(usize, usize)>, usize)> {
    let (mut groups, mut variants): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut places = Vec::new();
    for name in names {
        places.push((
            index(&mut groups, name.group.as_deref()?),
            index(&mut variants, &name.variant),
        ));
    }
    let repeats = places.iter().enumerate().any(|(place, parts)| places[..place].contains(parts));
    let fits = (2..=colour::MAX).contains(&groups.len())
        && (2..=DASHES.len()).contains(&variants.len())
        && !repeats;
    fits.then_some((places, groups.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: Vec<CurveName>) -> Vec<(String, usize)> {
        let series: Vec<Series> =
            names.into_iter().map(|name| Series::new(name, Vec::new())).collect();
        styles(&series).into_iter().map(|style| (style.pair.light, style.dash)).collect()
    }

    fn depth(depth: u32) -> CurveName {
        CurveName::from(format!("depth {depth}")).ordered(depth)
    }

    #[test]
    fn names_of_two_parts_share_colours_and_dashes() {
        let styles = of(["written", "extend"]
            .map(|group| [1, 8].map(|one| depth(one).in_group(group)))
            .concat());
        assert!(
            styles[0].0 == styles[1].0 && styles[2].0 == styles[3].0 && styles[0].0 != styles[2].0
        );
        assert!(
            styles[0].1 == styles[2].1 && styles[1].1 == styles[3].1 && styles[0].1 != styles[1].1
        );
    }

    #[test]
    fn curves_never_share_a_style() {
        let many = (0..18).map(|place| format!("name {}", char::from(b'a' + place)).into());
        for names in [
            [1, 8, 32].map(depth).to_vec(),
            ["read", "write", "write-through"].map(CurveName::new).to_vec(),
            ["read", "write"].map(|group| depth(1).in_group(group)).to_vec(),
            many.collect(),
        ] {
            let styles = of(names);
            assert!(
                (1..styles.len()).all(|place| !styles[..place].contains(&styles[place])),
                "{styles:?}"
            );
        }
    }
}
