//! Helpers for all command lines.

use machine::{Error, Result};
use std::path::Path;

pub(crate) fn refuse<T>(what: impl Into<String>, why: impl Into<String>, hint: &str) -> Result<T> {
    Err(Error::refused(what, why, hint))
}

pub(crate) fn shortened(text: &str) -> String {
    if text.chars().count() > 60 {
        text.chars().take(60).collect::<String>() + "..."
    } else {
        text.into()
    }
}

pub(crate) fn is_twin(path: &Path) -> bool {
    path.to_string_lossy().starts_with("twin:")
}

/// Refuses Windows drives: `#1`, `d:`, `\\.\PhysicalDrive1` would make files here.
pub(crate) fn no_drive(path: &Path) -> Result<()> {
    let name = path.to_string_lossy();
    let numbered = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    let lettered =
        |rest: &str| rest.len() == 1 && rest.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_drive = name.strip_prefix('#').is_some_and(numbered)
        || name.strip_suffix(':').is_some_and(lettered)
        || name.starts_with(r"\\.\");
    if !is_drive || path.exists() {
        return Ok(());
    }
    refuse(
        shortened(&name),
        "it names a drive only on Windows",
        "name a block device, such as /dev/sdb (lsblk lists them)",
    )
}

/// No system call accepts a NUL in a name.
pub(crate) fn no_nul(words: &[String]) -> Result<()> {
    match words.iter().find(|word| word.contains('\0')) {
        Some(bad) => {
            refuse(shortened(&bad.replace('\0', "\\0")), "it contains a NUL", "leave it out")
        }
        None => Ok(()),
    }
}

pub(crate) fn number(option: &str, text: &str, min: u64, max: u64) -> Result<u64> {
    number_of(&format!("{option} {}", shortened(text)), text, min, max)
}

/// Errors quote `words`.
pub(crate) fn number_of(words: &str, text: &str, min: u64, max: u64) -> Result<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u64>() {
        Ok(value) if plain && (min..=max).contains(&value) => Ok(value),
        _ => refuse(
            shortened(words),
            format!("it is not a number from {min} to {max}"),
            "choose one between them",
        ),
    }
}

/// Prefix of the argument, reason, hint.
pub(crate) type NotServed = (&'static str, &'static str, &'static str);

pub(crate) fn refuse_option<T>(
    words: &str,
    option: &str,
    not_served: &[NotServed],
    help: &str,
) -> Result<T> {
    match not_served.iter().find(|(name, _, _)| option.starts_with(name)) {
        Some((_, why, hint)) => refuse(shortened(words), *why, hint),
        None => refuse(shortened(words), "unknown option", help),
    }
}

pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:=@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Quotes arguments for a shell.
pub fn joined(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}
