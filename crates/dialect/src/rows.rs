//! A tool's options as table rows.

use crate::parse::{refuse, shortened};
use machine::{Error, Result};

/// `O`: the options it changes; `E`: the error of a value.
pub(crate) enum OptionKind<O: 'static, E: 'static> {
    Value(fn(&mut O, &str) -> std::result::Result<(), E>),
    Switch(fn(&mut O, bool)),
    /// 0 or 1, or on without a value; never takes the next argument.
    Flag(fn(&mut O, bool)),
    Text(fn(&mut O, String)),
    /// Values that describe what halfpower does anyway, and a hint for others.
    OnlyValues(&'static [&'static str], &'static str),
    /// A flag supported only when off, with a hint.
    OnlyZero(&'static str),
    /// Has no counterpart here, or always applies. As in fio, a malformed value is an error.
    Ignored(Form),
    Refused(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Flag,
    Switch,
    Number,
    Words(&'static [&'static str]),
    Text,
}

pub(crate) struct Row<O: 'static, E: 'static, G = ()> {
    names: &'static str,
    pub(crate) group: G,
    pub(crate) takes: OptionKind<O, E>,
}

impl<O, E, G> Row<O, E, G> {
    pub(crate) const fn new(names: &'static str, group: G, takes: OptionKind<O, E>) -> Self {
        Row { names, group, takes }
    }

    pub(crate) fn names(&self) -> std::str::SplitWhitespace<'static> {
        self.names.split_whitespace()
    }

    pub(crate) fn find<'r>(rows: &'r [Self], name: &str) -> Option<&'r Self> {
        rows.iter().find(|row| row.names().any(|known| known == name))
    }
}

pub(crate) fn put<T, E>(
    place: &mut T,
    value: std::result::Result<T, E>,
) -> std::result::Result<(), E> {
    *place = value?;
    Ok(())
}

/// Halfpower's own: `--name value`, `--name=value`, or a flag.
pub(crate) type Own<O> = Row<O, Error>;

/// `word` follows the two dashes.
pub(crate) fn set_own<'w, O>(
    rows: &[Own<O>],
    options: &mut O,
    word: &'w str,
    next: impl FnOnce() -> Option<&'w str>,
) -> Result<()> {
    let (name, glued) =
        word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
    let option = format!("--{}", shortened(name));
    match (Row::find(rows, name).map(|row| &row.takes), glued) {
        (Some(OptionKind::Flag(set)), None) => set(options, true),
        (Some(OptionKind::Value(set)), glued) => {
            match glued.or_else(next).filter(|value| !value.is_empty()) {
                Some(value) => set(options, value)?,
                None => return refuse(option, "its value is missing", "give it after the option"),
            }
        }
        _ => {
            let names: Vec<String> =
                rows.iter().flat_map(Row::names).map(|name| format!("--{name}")).collect();
            let (last, others) =
                names.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
            let hint = format!("halfpower's own are {} and {last}", others.join(", "));
            return refuse(option, "unknown option", &hint);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use OptionKind::{Flag, Value};

    static OWN: &[Own<(bool, String)>] = &[
        Row::new("json", (), Value(|o, text| put(&mut o.1, Ok(text.into())))),
        Row::new("keep", (), Flag(|o, on| o.0 = on)),
    ];

    fn set(word: &str, next: Option<&str>) -> std::result::Result<(bool, String), String> {
        let mut options = (false, String::new());
        set_own(OWN, &mut options, word, || next)
            .map(|()| options)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn own_options_take_values_or_are_flags() {
        assert_eq!(set("json=a", Some("b")), Ok((false, "a".into())));
        assert_eq!(set("json", Some("b")), Ok((false, "b".into())));
        assert_eq!(set("keep", Some("b")), Ok((true, String::new())));
        for next in [None, Some("")] {
            assert!(set("json", next).unwrap_err().contains("--json: its value is missing"));
        }
        for unknown in ["keep=1", "other", ""] {
            assert!(
                set(unknown, None).unwrap_err().contains("halfpower's own are --json and --keep"),
                "{unknown}"
            );
        }
    }
}
