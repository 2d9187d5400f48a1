//! Properties of the terminal.

use std::io::IsTerminal;

pub(crate) fn width() -> usize {
    terminal_size::terminal_size().map_or(100, |(columns, _)| usize::from(columns.0).clamp(60, 160))
}

pub(crate) fn colour() -> bool {
    let plain = std::env::var_os("TERM").is_none_or(|kind| kind.is_empty() || kind == "dumb");
    std::io::stdout().is_terminal()
        && !plain
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

pub(crate) fn table(head: &[&str], rows: &[Vec<String>], left: usize) -> String {
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    report::terminal::table(&head, rows, left, width(), colour())
}
