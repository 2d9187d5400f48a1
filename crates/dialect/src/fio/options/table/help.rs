//! Help on options.

use super::Group::{Access, Data, Files, Jobs, Report, Requests, Time};
use super::{ROWS, Row};
use crate::rows::OptionKind::{Flag, Ignored, OnlyValues, OnlyZero, Refused, Switch, Text, Value};

/// Grouped, `width` columns wide.
pub fn help(width: usize) -> String {
    let groups = [
        ("jobs", Jobs),
        ("files", Files),
        ("requests", Requests),
        ("access", Access),
        ("time", Time),
        ("data", Data),
        ("report", Report),
    ];
    let effective =
        |row: &&Row| !matches!(row.takes, OnlyValues(..) | OnlyZero(_) | Ignored(_) | Refused(_));
    let mut text = String::new();
    for (title, group) in groups {
        let names = ROWS
            .iter()
            .filter(effective)
            .filter(|row| row.group == group)
            .filter_map(|row| row.names().next());
        wrapped(&mut text, title, names, width);
    }
    let without_effect = ROWS.iter().filter(|row| matches!(row.takes, Ignored(_)));
    wrapped(&mut text, "no effect", without_effect.flat_map(Row::names), width);
    text
}

pub fn option_help(name: &str) -> Option<String> {
    let row = Row::find(ROWS, name)?;
    let names: Vec<&str> = row.names().collect();
    let (takes, more) = match &row.takes {
        OnlyValues(values, hint) => (format!("only {}", values.join(", ")), *hint),
        OnlyZero(hint) => ("only 0".into(), *hint),
        Refused(hint) => ("not supported".into(), *hint),
        Ignored(_) => ("no effect".into(), ""),
        Flag(_) => ("no value, or 0 or 1".into(), ""),
        Switch(_) => ("0 or 1".into(), ""),
        Text(_) | Value(_) => ("a value, as in fio".into(), ""),
    };
    let hint = if more.is_empty() { String::new() } else { format!("; {more}") };
    Some(format!("{:>20}: {takes}{hint}\n", names.join(", ")))
}

fn wrapped<'w>(text: &mut String, title: &str, words: impl Iterator<Item = &'w str>, width: usize) {
    let mut line = format!("  {title:<9}");
    for word in words {
        if line.len() + 1 + word.len() > width {
            text.push_str(&line);
            text.push('\n');
            line = " ".repeat(11);
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}
