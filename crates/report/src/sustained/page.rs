use super::{head, rows, wrote};
use crate::Error;
use crate::course::{Page, PagePart, Table};
use crate::plot::course::{Chart, Line, svg};
use machine::units::{show_capacity, show_rate, show_size, show_time};
use results::Axis;
use sustained::{FillResult, Level, Recovery, SeriesPoint, SustainedResult};

pub fn html(result: &SustainedResult) -> Result<String, Error> {
    let settings = &result.settings;
    let order = if settings.pattern.is_sequential() { "Sequential" } else { "Random" };
    let text = format!(
        "{order} writes of {}, {} outstanding, {}; p99 of a point is over about a second of writes.",
        show_size(u64::from(settings.request_bytes)),
        settings.depth,
        settings.engine
    );
    crate::course::html(&Page {
        kind: "sustained writes",
        target: &result.target.name,
        about: wrote(result),
        program: &result.program,
        doubts: &result.warnings,
        notice: None,
        sentences: &result.sentences,
        parts: vec![PagePart {
            title: "Sustained writes".into(),
            text,
            charts: charts(result),
            tables: tables(result),
        }],
    })
}

fn charts(result: &SustainedResult) -> Vec<String> {
    let points = &result.points;
    let levels = result.levels.iter().flat_map(|level| {
        let rate = level.bytes_per_s;
        [(level.from_bytes as f64, rate), (level.to_bytes as f64, rate)]
    });
    let chart =
        |title, x, x_title, y, lines| svg(&Chart { title, x, x_title, y, lines, shaded: None });
    let rates = Line::new("measured", by_bytes(points, SeriesPoint::bytes_per_s));
    let fitted = Line { dashed: true, ..Line::new("levels", levels.collect()) };
    let rate_unit = format!("Rate, {}", machine::units::shown_in().rate_unit());
    let mut charts = vec![
        chart(&rate_unit, Axis::CacheBytes, "written", Axis::BytesPerS, vec![rates, fitted]),
        chart(
            &rate_unit,
            Axis::TimeNs,
            "time",
            Axis::BytesPerS,
            vec![Line::new("", by_time(points, SeriesPoint::bytes_per_s))],
        ),
        chart(
            "99th percentile of the latency",
            Axis::CacheBytes,
            "written",
            Axis::TimeNs,
            vec![Line::new("", by_bytes(points, |point| point.p99_ns as f64))],
        ),
    ];
    if points.iter().any(|point| point.temperature_c.is_some()) {
        let celsius = by_time(points, |point| point.temperature_c.unwrap_or(0.0));
        charts.push(chart(
            "Temperature, °C",
            Axis::TimeNs,
            "time",
            Axis::Depth,
            vec![Line::new("", celsius)],
        ));
    }
    charts
}

fn by_bytes(points: &[SeriesPoint], y: impl Fn(&SeriesPoint) -> f64) -> Vec<(f64, f64)> {
    let at = |point: &SeriesPoint| point.from_bytes as f64 + point.bytes as f64 / 2.0;
    points.iter().map(|point| (at(point), y(point))).collect()
}

fn by_time(points: &[SeriesPoint], y: impl Fn(&SeriesPoint) -> f64) -> Vec<(f64, f64)> {
    points.iter().map(|point| ((point.from_s + point.served_s / 2.0) * 1e9, y(point))).collect()
}

fn tables(result: &SustainedResult) -> Vec<Table> {
    let levels = Table { caption: "Levels".into(), head: head(), rows: rows(result) };
    let mut all = vec![levels];
    if !result.recoveries.is_empty() {
        all.push(recoveries(&result.recoveries));
    }
    if !result.fills.is_empty() {
        all.push(fills(&result.fills));
    }
    all
}

fn recoveries(recoveries: &[Recovery]) -> Table {
    let has_middle = recoveries.iter().any(|one| one.middle_bytes > 0.0);
    let row = |one: &Recovery| {
        let amount = |bytes: f64| {
            let amount = show_capacity(bytes);
            if one.cut_short { format!("at least {amount}") } else { amount }
        };
        let middle = has_middle.then(|| amount(one.middle_bytes));
        [show_time(one.rest_s * 1e9), amount(one.fast_bytes)].into_iter().chain(middle).collect()
    };
    let middle = has_middle.then_some("at the rate in between");
    let head = ["rest", "written at the fast rate after it"].into_iter().chain(middle);
    Table {
        caption: "Recovery at rest".into(),
        head: head.map(str::to_owned).collect(),
        rows: recoveries.iter().map(row).collect(),
    }
}

fn fills(fills: &[FillResult]) -> Table {
    let row = |one: &FillResult| {
        let of = |level: Option<&Level>| {
            level.map_or(String::new(), |level| show_rate(level.bytes_per_s))
        };
        let fast = one.reserve.map_or(String::new(), |one| show_capacity(one.fast_bytes));
        vec![
            format!("{} %", one.percent),
            sustained::span(one.rest_s),
            of(one.levels.first()),
            fast,
            of(one.levels.last()),
        ]
    };
    Table {
        caption: "With more of the target filled".into(),
        head: ["filled", "rest", "at first", "for", "at the end"].map(str::to_owned).to_vec(),
        rows: fills.iter().map(row).collect(),
    }
}
