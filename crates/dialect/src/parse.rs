//! What the command lines of all tools share.

use machine::{Error, Result};

/// A refused word: what, why not, and the hint.
pub(crate) fn refuse<T>(what: impl Into<String>, why: impl Into<String>, hint: &str) -> Result<T> {
    Err(Error::refused(what, why, hint))
}

/// The beginning of what may be very long.
pub(crate) fn shortened(text: &str) -> String {
    if text.chars().count() > 60 { text.chars().take(60).collect::<String>() + "..." } else { text.into() }
}

/// Whether a name is that of a simulated machine, and no file.
pub(crate) fn is_twin(path: &std::path::Path) -> bool {
    path.to_string_lossy().starts_with("twin:")
}

/// No system call takes a name with a NUL.
pub(crate) fn no_nul(words: &[String]) -> Result<()> {
    match words.iter().find(|word| word.contains('\0')) {
        Some(bad) => refuse(shortened(&bad.replace('\0', "\\0")), "it contains a NUL", "leave it out"),
        None => Ok(()),
    }
}

/// A whole number of a range.
pub(crate) fn number(option: &str, text: &str, least: u64, most: u64) -> Result<u64> {
    number_of(&format!("{option} {}", shortened(text)), text, least, most)
}

/// A whole number of a range; a refusal names the words as their user wrote them.
pub(crate) fn number_of(words: &str, text: &str, least: u64, most: u64) -> Result<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u64>() {
        Ok(value) if plain && (least..=most).contains(&value) => Ok(value),
        _ => refuse(shortened(words), format!("it is not a number from {least} to {most}"), "choose one between them"),
    }
}

/// What a tool's original knows and halfpower does not serve: the beginning of the word, why not, and the hint.
pub(crate) type NotServed = (&'static str, &'static str, &'static str);

/// Refuses a word that no option took: one of the original's is told apart from one that nobody knows.
pub(crate) fn refuse_option<T>(words: &str, option: &str, not_served: &[NotServed], help: &str) -> Result<T> {
    match not_served.iter().find(|(name, _, _)| option.starts_with(name)) {
        Some((_, why, hint)) => refuse(shortened(words), *why, hint),
        None => refuse(shortened(words), "there is no such option", help),
    }
}

/// A word as a shell takes it.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:=@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.into() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Words as a shell takes them.
pub(crate) fn joined(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}
