//! A study's answer on one screen.

use super::{Line, Tone, fit, pad, points, render, wrap};
use crate::format::{plural, rate_unit, spent};
use crate::pipeline::{Cell, Column, Pipeline};
use crate::{advice, doubts, sentences, speeds};
use machine::text::printable;
use results::{Answer, Lasting, Limit, LimitOf, Overview, Results};
use unicode_width::UnicodeWidthStr;

/// The lines of the smallest terminal that shows the whole answer.
const MAX_LINES: usize = 30;

const MIN_CHANGE: usize = 34;

#[derive(Clone, Copy)]
struct Detail {
    doubts: usize,
    limit_lines: usize,
    plain_limits: bool,
    stages: usize,
    changes: usize,
    spaced: bool,
}

const MIN: Detail =
    Detail { doubts: 1, limit_lines: 1, plain_limits: false, stages: 4, changes: 3, spaced: false };

/// Most important first.
const MORE: [fn(&mut Detail); 11] = [
    |d| d.plain_limits = true,
    |d| d.limit_lines = 2,
    |d| d.doubts = 2,
    |d| d.stages = 6,
    |d| d.spaced = true,
    |d| d.stages = 7,
    |d| d.changes = 4,
    |d| d.stages = 8,
    |d| d.doubts = 3,
    |d| d.changes = 5,
    |d| d.stages = 12,
];

/// 30 lines, or [`points()`] without an answer.
pub fn answer(results: &Results, width: usize, colour: bool) -> String {
    let Some(answer) = &results.answer else { return points(results, width, colour) };
    let width = width.max(40);
    let overview = Overview::of(results);
    let compose = |detail| compose(results, answer, overview.as_ref(), detail, width);
    let mut detail = MIN;
    let mut lines = compose(detail);
    for more in MORE {
        let mut richer = detail;
        more(&mut richer);
        let longer = compose(richer);
        if longer.len() <= MAX_LINES {
            (detail, lines) = (richer, longer);
        }
    }
    render(&lines, width, colour)
}

fn compose(
    results: &Results,
    answer: &Answer,
    overview: Option<&Overview>,
    detail: Detail,
    width: usize,
) -> Vec<Line> {
    let mut lines = vec![title(results, width)];
    lines.extend(doubt_lines(answer, detail.doubts, width));
    let mut part = |body: Vec<Line>| {
        if detail.spaced && !body.is_empty() {
            lines.push(Vec::new());
        }
        lines.extend(body);
    };
    if let Some(overview) = overview {
        part(how_fast(overview, answer, width));
        part(why_not_faster(answer, detail, width));
        if let Some(pipeline) = Pipeline::of(results, overview, detail.stages) {
            part(picture(&pipeline, width));
        }
    }
    part(how_many_clients(results, width));
    part(what_to_do(answer, results, detail.changes, width));
    lines
}

fn how_many_clients(results: &Results, width: usize) -> Vec<Line> {
    let lines = |text: String| {
        let mark = |place| if place == 0 { "- " } else { "  " };
        let lines = wrap(&text, width - 2).into_iter().enumerate();
        let lines =
            lines.map(|(place, line)| vec![(Tone::Quiet, mark(place).into()), (Tone::Plain, line)]);
        lines.collect::<Vec<Line>>()
    };
    let lines: Vec<Line> = sentences::of_clients(results).into_iter().flat_map(lines).collect();
    if lines.is_empty() {
        return lines;
    }
    std::iter::once(heading("How many clients?", &[], 0)).chain(lines).collect()
}

pub(super) fn title(results: &Results, width: usize) -> Line {
    let spent = spent(results);
    let name = fit(&printable(&results.target.name), width.saturating_sub(spent.width() + 2));
    let gap = width.saturating_sub(name.width() + spent.width());
    vec![(Tone::Strong, name), (Tone::Plain, " ".repeat(gap)), (Tone::Quiet, spent)]
}

fn doubt_lines(answer: &Answer, most: usize, width: usize) -> Vec<Line> {
    let all = doubts::merged(answer);
    let mut lines = Vec::new();
    for text in all.iter().take(most) {
        for (place, line) in wrap(text, width - 2).into_iter().enumerate() {
            lines.push(vec![
                (Tone::Doubt, if place == 0 { "! " } else { "  " }.into()),
                (Tone::Doubt, line),
            ]);
        }
    }
    if all.len() > most {
        let more = plural(all.len() - most, "more doubt");
        lines.push(vec![(Tone::Doubt, format!("! {more} in the report"))]);
    }
    lines
}

fn heading(question: &str, columns: &[(String, usize)], first: usize) -> Line {
    let mut line = vec![(Tone::Strong, pad(question, first))];
    line.extend(columns.iter().map(|(name, width)| (Tone::Quiet, pad(name, *width))));
    line
}

fn how_fast(overview: &Overview, answer: &Answer, width: usize) -> Vec<Line> {
    let mut lines = speed_table(overview, width);
    // A rate that fell is already among the doubts.
    let lasting = answer.long_writes.iter().filter(|one| one.lasting() == Lasting::AsFarAsSeen);
    let text = lasting.flat_map(|one| wrap(&one.to_string(), width));
    lines.extend(text.map(|line| vec![(Tone::Plain, line)]));
    lines
}

fn speed_table(overview: &Overview, width: usize) -> Vec<Line> {
    let rows = speeds::rows(overview);
    if rows.is_empty() {
        return Vec::new();
    }
    let heads = speeds::heads(overview);
    let first = rows.iter().map(|row| row.name.width()).max().unwrap_or(0) + 2;
    let cells = rows.iter().flat_map(|row| &row.cells);
    let column = cells.map(|cell| cell.width()).max().unwrap_or(0) + 2;
    if first + column * heads.len() > width + 2 {
        let of_row = |row: &speeds::Row| {
            let cells = heads.iter().zip(&row.cells).filter(|(_, cell)| !cell.is_empty());
            let cells = cells.map(|(head, cell)| {
                vec![(Tone::Quiet, pad(&format!("  {head}"), 10)), (Tone::Strong, cell.clone())]
            });
            let name = vec![(Tone::Plain, row.name.clone())];
            std::iter::once(name).chain(cells).collect::<Vec<Line>>()
        };
        let body = rows.iter().flat_map(of_row);
        return std::iter::once(heading("How fast?", &[], 0)).chain(body).collect();
    }
    let column = column.max(((width - first) / heads.len().max(2)).min(28));
    let heads: Vec<(String, usize)> = heads.into_iter().map(|head| (head, column)).collect();
    let line = |row: &speeds::Row| {
        let mut line = vec![(Tone::Plain, pad(&row.name, first))];
        line.extend(row.cells.iter().map(|cell| (Tone::Strong, pad(cell, column))));
        line
    };
    let head = heading("How fast?", &heads, first);
    std::iter::once(head).chain(rows.iter().map(line)).collect()
}

fn why_not_faster(answer: &Answer, detail: Detail, width: usize) -> Vec<Line> {
    let said: Vec<&Limit> = sentences::shown_limits(answer)
        .into_iter()
        .filter(|limit| limit.of == LimitOf::Peak || detail.plain_limits)
        .collect();
    let lines = said.into_iter().flat_map(|limit| {
        let versions = sentences::cause(limit);
        let text = versions.fitting(|text| wrap(text, width - 2).len() <= detail.limit_lines);
        let lines = wrap(text, width - 2).into_iter().enumerate();
        lines
            .map(|(place, line)| {
                vec![
                    (Tone::Quiet, if place == 0 { "- " } else { "  " }.into()),
                    (Tone::Plain, line),
                ]
            })
            .collect::<Vec<Line>>()
    });
    let lines: Vec<Line> = lines.collect();
    if lines.is_empty() {
        return lines;
    }
    std::iter::once(heading("Why not faster?", &[], 0)).chain(lines).collect()
}

fn picture(pipeline: &Pipeline, width: usize) -> Vec<Line> {
    let names = stage_names(pipeline, width);
    let title = "From program down";
    let names_width = names.iter().map(|name| name.width() + 2).max().unwrap_or(0);
    let first = names_width.max(title.width()) + 1;
    let figure = |cell: &Cell| {
        format!("{}{}", cell.words("/"), if cell.narrowest { " <" } else { "" }).width()
    };
    let figures = pipeline.rows.iter().flat_map(|row| &row.cells).map(figure).max().unwrap_or(0);
    let column = (width - first) / pipeline.columns.len().max(2);
    let bar_width = column.saturating_sub(figures + 3).clamp(6, 30);
    let heads: Vec<(String, usize)> = pipeline
        .columns
        .iter()
        .enumerate()
        .map(|(place, column)| {
            let unit = if place == 0 { format!(", {}", rate_unit()) } else { String::new() };
            (format!("{}s{unit}", column.op), bar_width + figures + 3)
        })
        .collect();
    let mut lines = vec![heading(title, &heads, first)];
    let of_row = |(row, name): (&crate::pipeline::Row, &String)| {
        let narrowest = row.cells.iter().any(|cell| cell.narrowest);
        let tone = if narrowest { Tone::Good } else { Tone::Plain };
        let mark = if narrowest { "> " } else { "  " };
        let mut line = vec![(tone, pad(&format!("{mark}{name}"), first))];
        for (cell, column) in row.cells.iter().zip(&pipeline.columns) {
            let tone = if cell.narrowest { Tone::Good } else { Tone::Plain };
            let mark = if cell.narrowest { " <" } else { "" };
            let text = format!(
                "{} {}",
                bar(cell, column, bar_width),
                pad(&format!("{}{mark}", cell.words("/")), figures)
            );
            if line.len() > 1 {
                line.push((Tone::Plain, "  ".into()));
            }
            line.push((tone, text));
        }
        line
    };
    lines.extend(pipeline.rows.iter().zip(&names).map(of_row));
    let legend = "  █ achieved / ░ advertised, → beyond the scale, < narrowest";
    lines.push(vec![(Tone::Quiet, legend.into())]);
    lines
}

fn stage_names(pipeline: &Pipeline, width: usize) -> Vec<String> {
    let kinds: Vec<&str> = pipeline.rows.iter().map(|row| row.kind).collect();
    let name = |row: &crate::pipeline::Row, room: usize| {
        let both = format!("{} {}", row.kind, printable(&row.name));
        let repeated = kinds.iter().filter(|kind| **kind == row.kind).count() > 1;
        match both.trim_end() {
            both if both.width() <= room => both.to_owned(),
            _ if repeated => fit(&printable(&row.name), room),
            _ => row.kind.to_owned(),
        }
    };
    let room = width / 4;
    pipeline.rows.iter().map(|row| name(row, room)).collect()
}

fn bar(cell: &Cell, column: &Column, width: usize) -> String {
    let blocks =
        |rate: Option<f64>| rate.map_or(0, |rate| columns_of(column.place(rate), width).max(1));
    let (full, light) = (blocks(cell.achieved), blocks(cell.advertised));
    let mut bar = "█".repeat(full) + &"░".repeat(light.saturating_sub(full));
    let beyond = |rate: Option<f64>| rate.is_some_and(|rate| column.is_beyond(rate));
    if beyond(cell.achieved) || beyond(cell.advertised) {
        bar.pop();
        bar.push('→');
    }
    pad(&bar, width)
}

fn columns_of(share: f64, width: usize) -> usize {
    (share * width as f64).round() as usize
}

fn what_to_do(answer: &Answer, results: &Results, most: usize, width: usize) -> Vec<Line> {
    const TITLE: &str = "What to do?";
    let rows = advice::rows(answer, results);
    if rows.is_empty() {
        let body = wrap(advice::nothing_to_change(answer), width).into_iter();
        let body = body.map(|line| vec![(Tone::Good, line)]);
        return std::iter::once(heading(TITLE, &[], 0)).chain(body).collect();
    }
    let shown = &rows[..rows.len().min(most)];
    let wide = |of: fn(&advice::Row) -> &String, title: &str| {
        shown.iter().map(|row| of(row).width()).max().unwrap_or(0).max(title.width()) + 2
    };
    let (gain, cost) = (wide(|row| &row.gain, "gain"), wide(|row| &row.cost, "costs"));
    let stacked = gain + cost + MIN_CHANGE > width;
    let change = if stacked { width } else { width + 2 - gain - cost };
    let columns = [("gain".into(), gain), ("costs".into(), cost - 2)];
    let mut lines = vec![heading(TITLE, if stacked { &[] } else { &columns }, change)];
    for (number, row) in shown.iter().enumerate() {
        for (place, text) in wrap(&row.change, change - 4).into_iter().enumerate() {
            let number = if place == 0 { format!("{} ", number + 1) } else { "  ".into() };
            let text = (Tone::Strong, pad(&format!("{number}{text}"), change));
            let beside =
                [(Tone::Good, pad(&row.gain, gain)), (Tone::Plain, row.cost.clone())].into_iter();
            let beside = beside.filter(|_| place == 0 && !stacked);
            lines.push(std::iter::once(text).chain(beside).collect());
        }
        if stacked {
            let words = format!("gain {}; costs {}", row.gain, row.cost);
            let body = wrap(&words, width - 2).into_iter();
            lines.extend(body.map(|line| vec![(Tone::Good, format!("  {line}"))]));
        }
    }
    lines
}
