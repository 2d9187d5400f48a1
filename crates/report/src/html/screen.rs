//! The first screen of a study's page.

use super::pipeline::{self, Picture};
use crate::{advice, classic, doubts, sentences, speeds};
use results::{Overview, Results};
use serde::Serialize;

const SHOWN_DOUBTS: usize = 3;

const SHOWN_CHANGES: usize = 5;

#[derive(Serialize)]
pub(super) struct ScreenView {
    doubts: Vec<String>,
    more_doubts: Vec<String>,
    heads: Vec<String>,
    speeds: Vec<(String, Vec<String>)>,
    why: Vec<String>,
    clients: Vec<String>,
    pictures: Vec<Picture>,
    changes: Vec<[String; 3]>,
    more_changes: Vec<[String; 3]>,
    nothing: &'static str,
    classic_head: Vec<String>,
    classic: Vec<Vec<String>>,
    classic_note: Option<&'static str>,
}

pub(super) fn view(results: &Results) -> Option<ScreenView> {
    let answer = results.answer.as_ref()?;
    let overview = Overview::of(results);
    let rows = overview.as_ref().map(speeds::rows).unwrap_or_default();
    let classic = overview.as_ref().and_then(classic::view);
    let mut doubts = doubts::merged(answer);
    let more_doubts = doubts.split_off(doubts.len().min(SHOWN_DOUBTS));
    let rows_of_advice = advice::rows(answer, results).into_iter();
    let mut changes: Vec<[String; 3]> =
        rows_of_advice.map(|row| [row.change, row.gain, row.cost]).collect();
    let more_changes = changes.split_off(changes.len().min(SHOWN_CHANGES));
    let limits = sentences::shown_limits(answer).into_iter();
    let (classic_head, classic, classic_note) =
        classic.map(|table| (table.head, table.rows, table.note)).unwrap_or_default();
    Some(ScreenView {
        doubts,
        more_doubts,
        heads: overview.as_ref().map(speeds::heads).unwrap_or_default(),
        speeds: rows.into_iter().map(|row| (row.name, row.cells)).collect(),
        why: limits.map(|limit| sentences::cause(limit).full().to_owned()).collect(),
        clients: sentences::of_clients(results),
        pictures: overview.iter().flat_map(|one| pipeline::pictures(results, one)).collect(),
        changes,
        more_changes,
        nothing: advice::nothing_to_change(answer),
        classic_head,
        classic,
        classic_note,
    })
}
