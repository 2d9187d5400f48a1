//! fio's terse versions 2 to 5.

use super::direction::{Direction, PERCENTILES, cases};
use super::lines::{at, number};
use results::compare::Measurement;

const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
/// After size, rates and time; latencies are in us.
const SUBMISSION: usize = 4;
const PERCENTILES_FROM: usize = 12;
const PERCENTILE_COUNT: usize = 20;
const TOTAL_MEAN: usize = PERCENTILES_FROM + PERCENTILE_COUNT + 2;

pub(super) fn is_terse(line: &str) -> bool {
    matches!(line.split_once(';'), Some(("2" | "3" | "4" | "5", rest)) if rest.contains("%="))
}

/// Fields before the first direction, and of each.
fn layout(version: &str) -> (usize, usize) {
    match version {
        "2" => (4, 41),
        "5" => (5, 47),
        _ => (5, 41),
    }
}

pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut all: Vec<Direction> = Vec::new();
    for (place, line) in text.lines().enumerate().filter(|(_, line)| is_terse(line.trim())) {
        let fields: Vec<&str> = line.trim().split(';').collect();
        let (head, width) = layout(fields[0]);
        let field = |index: usize| fields.get(index).copied().unwrap_or_default();
        let names = if fields[0] == "2" { 1 } else { 2 };
        let group = number(field(names + 1), place)? as u64;
        for (index, does) in DIRECTIONS.into_iter().enumerate() {
            let from = head + index * width;
            let is_direction = fields.len() >= from + width
                && field(from + PERCENTILES_FROM).contains("%=")
                && field(from + PERCENTILES_FROM + PERCENTILE_COUNT - 1).contains("%=");
            if !is_direction {
                // Only version 4 and later have trims.
                if does == "trim" {
                    break;
                }
                return Err(at(
                    place,
                    format_args!(
                        "the fields of {does} are not where version {} of fio's terse form has them; give the line as fio prints it",
                        fields[0]
                    ),
                ));
            }
            let value = |index: usize| number(field(from + index), place);
            if value(2)? == 0.0 {
                continue;
            }
            let mut one = Direction {
                group,
                settings: vec![("job", field(names).to_string())],
                does,
                iops: value(2)?,
                bytes_per_s: value(1)? * 1024.0,
                requests: value(2)? * value(3)? / 1e3,
                mean_ns: Some(value(TOTAL_MEAN)? * 1e3).filter(|ns| *ns > 0.0),
                ..Direction::default()
            };
            // As fio prints them: without total latencies, those of completion.
            if one.mean_ns.is_none() {
                one.mean_ns = Some(value(SUBMISSION + 4 + 2)? * 1e3).filter(|ns| *ns > 0.0);
            }
            for (ns, (name, _)) in one.percentiles_ns.iter_mut().zip(PERCENTILES) {
                let percentile = |text: &&&str| text.starts_with(name);
                let fields = &fields[from + PERCENTILES_FROM..][..PERCENTILE_COUNT];
                if let Some((_, us)) =
                    fields.iter().find(percentile).and_then(|text| text.split_once('='))
                {
                    *ns = Some(number(us, place)? * 1e3);
                }
            }
            if all.iter().any(|known| one.is_clone_of(known)) {
                return Err(at(
                    place,
                    format_args!(
                        "job '{}' is there twice, and fio's terse form does not say whether these are clones or repeats; run fio with --group_reporting, and write each run to a file of its own",
                        field(names)
                    ),
                ));
            }
            all.push(one);
        }
    }
    Ok(cases(all))
}
