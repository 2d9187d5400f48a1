//! The options of `run` in another command.

use crate::arguments::PointArguments;
use clap::Args;

/// Words that are not UTF-8 are file names, not options: lossy text is harmless.
pub(crate) fn words_typed() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())
}

/// `Own` are the command's other options: their values may look like options of `run`.
pub(crate) fn words_of_runs<Own: Args>(words: impl Iterator<Item = String>) -> Vec<String> {
    let own = Own::augment_args(clap::Command::new("own"));
    let takes_value = |name: &str| {
        own.get_arguments()
            .any(|one| one.get_long() == Some(name) && one.get_action().takes_values())
    };
    let sweep = PointArguments::command("sweep");
    let mut kept = Vec::new();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--") else { continue };
        let name = option.split('=').next().unwrap_or(option);
        let Some(known) = sweep.get_arguments().find(|one| one.get_long() == Some(name)) else {
            if takes_value(name) && !option.contains('=') {
                words.next();
            }
            continue;
        };
        let has_value = known.get_action().takes_values() && !option.contains('=');
        kept.push(word);
        if has_value {
            kept.extend(words.next());
        }
    }
    kept
}

pub(crate) fn workload_options<Own: Args>() -> Vec<String> {
    let words = words_of_runs::<Own>(words_typed());
    words.into_iter().filter(|word| word.starts_with("--") && word != "--json").collect()
}
