//! Names and numbers of a document cause no panic, broken page, terminal escape or torn CSV row.

mod support;

use proptest::prelude::*;
use results::{Axis, Figure, HalfPower, PeakSource, Results, Series, Value, Varied};
use unicode_width::UnicodeWidthStr;
use workload::OpKind;

const AXES: [Axis; 14] = [
    Axis::RequestBytes,
    Axis::Depth,
    Axis::Threads,
    Axis::Completions,
    Axis::OffsetBytes,
    Axis::Position,
    Axis::ChunkBytes,
    Axis::Members,
    Axis::TimeNs,
    Axis::BytesPerS,
    Axis::Iops,
    Axis::CpuNsPerMib,
    Axis::CpuNsPerRequest,
    Axis::ServiceNs,
];

const ESCAPE: char = '\x1b';

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,30}",
        any::<String>(),
        Just("</script><script>alert(1)</script>".to_string()),
        Just("\u{1b}[2J\u{7}\r\n\u{0}".to_string()),
        Just("'\" onload=\"alert(1)\" <!-- ]]> {{ 7 * 7 }} {% raw %}".to_string()),
        Just("depth 8".to_string()),
        "[a-z_]{200,400}",
    ]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("a number", |value| !value.is_nan()),
        0.0..1e10f64,
        (0u32..40).prop_map(|power| f64::from(power).exp2()),
        Just(0.0),
        Just(-1.0),
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE / 8.0),
    ]
}

fn interval() -> impl Strategy<Value = Option<[f64; 2]>> {
    prop::option::of((number(), number()).prop_map(|(low, high)| [low, high]))
}

fn value() -> impl Strategy<Value = Value> {
    (number(), prop::option::of(number()), interval(), prop::option::of(0usize..600))
        .prop_map(|(x, y, interval_95, point)| Value { x, y, interval_95, point })
}

prop_compose! {
    fn half_power()(
        of in prop::sample::select(&[Varied::Depth, Varied::RequestBytes, Varied::ChunkBytes][..]), at in name(),
        op in prop::sample::select(&[OpKind::Read, OpKind::Write, OpKind::Mix][..]),
        peak_bytes_per_s in number(), peak_from in prop::sample::select(&[PeakSource::Measured, PeakSource::Advertised][..]), smallest in prop::option::of(number()), crossing in prop::option::of(number()),
        interval_95 in interval(), at_or_below in any::<bool>(),
    ) -> HalfPower {
        HalfPower { of, at, fixed: None, op, peak_bytes_per_s, peak_from, smallest, crossing, interval_95, at_or_below }
    }
}

prop_compose! {
    fn series()(name in name(), values in prop::collection::vec(value(), 0..12), half_power in prop::option::of(half_power())) -> Series {
        Series { name, parts: None, values, half_power }
    }
}

prop_compose! {
    fn figure()(
        id in name(), title in name(), x in prop::sample::select(&AXES[..]), y in prop::sample::select(&AXES[..]),
        series in prop::collection::vec(series(), 0..14),
    ) -> Figure {
        Figure { id, title, x, y, series }
    }
}

prop_compose! {
    fn document()(
        figures in prop::collection::vec(figure(), 0..4), names in prop::collection::vec(name(), 24), numbers in prop::collection::vec(number(), 24),
        halves in prop::collection::vec(half_power(), 0..6), elapsed_ns in any::<u64>(), began_unix_s in any::<u64>(), rates in prop::collection::vec(number(), 0..5),
    ) -> Results {
        let mut results = support::study();
        let mut names = names.into_iter().cycle();
        let mut name = || names.next().unwrap_or_default();
        let mut numbers = numbers.into_iter().cycle();
        let mut number = || numbers.next().unwrap_or_default();
        (results.elapsed_ns, results.began_unix_s) = (elapsed_ns, began_unix_s);
        (results.target.name, results.machine.name) = (name(), name());
        results.program.arguments = vec![name(), name()];
        results.warnings = vec![name()];
        results.machine.settings.insert(name(), name());
        for layer in &mut results.target.layers {
            (layer.name, layer.advertised_bytes_per_s) = (name(), Some(number()));
            layer.settings.insert(name(), name());
        }
        let experiment = &mut results.experiments[0];
        (experiment.id, experiment.title, experiment.question, experiment.sentence) = (name(), name(), name(), name());
        (experiment.left_out, experiment.figures) = (vec![name()], figures);
        experiment.memory[0].rates_bytes_per_s = rates;
        results.experiments[1].skipped = Some(name());
        let answer = results.answer.as_mut().expect("a study has an answer");
        (answer.doubts, answer.left_out, answer.half_power) = (vec![name(), name()], vec![name()], halves);
        (answer.peaks[0].settings, answer.peaks[0].throughput_bytes_per_s, answer.peaks[0].point) = (name(), number(), 100_000);
        let cause = results::Cause::Advertised { layer: name(), admits_bytes_per_s: number() };
        (answer.limits[0].sentence, answer.limits[0].cause) = (name(), Some(cause));
        answer.limits[2].sentence = name();
        (answer.costs[0].ns_per_request, answer.costs[0].ns_per_byte_interval_95) = (number(), [number(), number()]);
        (answer.service_times[0].fixed_ns, answer.service_times[0].knee_bytes) = (number(), Some(number()));
        let finding = &mut answer.findings[0];
        (finding.title, finding.evidence, finding.setting, finding.check, finding.gain) = (name(), name(), name(), name(), number());
        results.rates = support::metadata().rates;
        (results.rates[0].operation, results.rates[0].settings, results.rates[0].per_s) = (name(), name(), number());
        results.points[3].error = Some(name());
        results.points[3].numbers = None;
        let numbers = results.points[5].numbers.as_mut().expect("a measured point");
        (numbers.warnings, numbers.throughput_bytes_per_s, numbers.interval_95) = (vec![name(), name()], number(), Some([number(), number()]));
        (numbers.latency_ns.max, numbers.achieved.device_request_bytes) = (u64::MAX, Some(number()));
        results
    }
}

fn assert_well_formed(page: &str) {
    const VOID: [&str; 3] = ["!doctype", "meta", "br"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').expect("a tag ends");
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap_or_default();
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes of <{tag}> match");
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "</{closed}> closes what was opened last");
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
            if ["script", "style"].contains(&name) {
                let end = rest.find(&format!("</{name}>")).expect("it ends");
                rest = &rest[end..];
            }
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
    assert_eq!(page.matches("<script").count(), 2, "no name became a script");
    assert!(
        !page.chars().any(|c| c.is_control() && c != '\n'),
        "no control character reaches the page"
    );
}

/// Parses CSV by RFC 4180.
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut chars) = (false, text.chars().peekable());
    while let Some(c) = chars.next() {
        match (quoted, c) {
            (true, '"') if chars.peek() == Some(&'"') => {
                cell.push(chars.next().unwrap_or_default())
            }
            (true, '"') => quoted = false,
            (false, '"') if cell.is_empty() => quoted = true,
            (false, ',') => row.push(std::mem::take(&mut cell)),
            (false, '\r') if chars.peek() == Some(&'\n') => {
                chars.next();
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            (_, c) => cell.push(c),
        }
    }
    assert!(!quoted && row.is_empty() && cell.is_empty(), "the last row ends");
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_document_can_be_shown(results in document(), width in 40usize..160) {
        let page = report::html(&results).expect("a page");
        assert_well_formed(&page);
        prop_assert!(!page.contains("NaN"), "every number has a place");
        for colour in [false, true] {
            let texts = [
                report::terminal::answer(&results, width, colour),
                report::terminal::tables(&results, width, colour),
                report::terminal::points(&results, width, colour),
            ];
            for text in texts {
                let steers = text.chars().any(|c| c.is_control() && c != '\n' && !(colour && c == ESCAPE));
                prop_assert!(!steers && !text.contains("\x1b[2J"), "no name steers the terminal");
            }
        }
        let answer = report::terminal::answer(&results, width, false);
        prop_assert!(answer.lines().all(|line| line.width() <= width), "{answer}");
        for (name, text) in results::csv(&results) {
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c)), "{name}");
            let rows = parse_csv(&text);
            prop_assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{name}");
        }
    }
}

#[test]
fn csv_round_trips() {
    let mut results = support::sweep();
    let error = "a \"quoted\" error, with\r\na second line";
    results.points[9].error = Some(error.into());
    let (_, text) = results::csv(&results).remove(0);
    let rows = parse_csv(&text);
    assert_eq!(rows.len(), 16);
    assert_eq!(rows[10].last().map(String::as_str), Some(error));
}

#[test]
fn a_sweep_of_ten_thousand_points_stays_small() {
    let mut results = support::sweep();
    let one = results.points[0].clone();
    results.points = (0..10_000)
        .map(|index| {
            let mut point = one.clone();
            point.workload.workload.request_bytes = 512 * (index % 100 + 1);
            point.workload.workload.depth = index / 100 + 1;
            point
        })
        .collect();
    let page = report::html(&results).expect("a page");
    assert_well_formed(&page);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(page.contains("more are in points.csv"));
}
