//! Completion scripts and manual pages.

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Directory;
use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::CompleteEnv;
use clap_complete::env::Shells;
use std::io;
use std::path::PathBuf;

const VARIABLE: &str = "HALFPOWER_COMPLETE";

const NAME: &str = "halfpower";

/// Ends the program if a completion script runs it.
pub(crate) fn complete(program: fn() -> Command) {
    CompleteEnv::with_factory(program).var(VARIABLE).bin(NAME).complete();
}

/// Options of `completions`.
#[derive(Args, Clone)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_parser = PossibleValuesParser::new(Shells::builtins().names().collect::<Vec<_>>()))]
    shell: String,
}

/// Bash splits at colons, but `twin:NAME` is one word.
const BASH_COLONS: &str = r#"
_halfpower() {
    local -a joined=()
    local word
    for word in "${COMP_WORDS[@]:0:COMP_CWORD + 1}"; do
        if ((${#joined[@]})) && [[ $word == : || ${joined[-1]} == *: ]]; then
            joined[-1]+=$word
        else
            joined+=("$word")
        fi
    done
    local -a COMP_WORDS=("${joined[@]}")
    local COMP_CWORD=$((${#joined[@]} - 1))
    local current=${joined[-1]}
    _clap_complete_halfpower halfpower "$current"
    if [[ $current == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*:}"}"}")
    fi
}
complete -o nospace -o bashdefault -o nosort -F _halfpower halfpower
"#;

pub(crate) fn completions(
    context: &Context,
    arguments: &CompletionsArguments,
) -> Result<(), Failure> {
    let mut script = Vec::new();
    let written = match Shells::builtins().completer(&arguments.shell) {
        Some(shell) => shell.write_registration(VARIABLE, NAME, NAME, NAME, &mut script),
        None => Err(io::ErrorKind::NotFound.into()),
    };
    written.map_err(|error| Failure::Run(format!("cannot write the script: {error}")))?;
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if arguments.shell == "bash" {
        script += BASH_COLONS;
    }
    context.console.print(&script)
}

/// Options of `man`.
#[derive(Args, Clone)]
pub(crate) struct ManArguments {
    /// Directory for the pages
    directory: PathBuf,
}

pub(crate) fn man(
    context: &Context,
    arguments: &ManArguments,
    program: Command,
) -> Result<(), Failure> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let mut pages = Vec::new();
    add_pages(&program, &mut pages)
        .map_err(|error| Failure::Run(format!("cannot make the pages: {error}")))?;
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    let directory = Directory::new(context, &arguments.directory, &[], &names)?;
    pages.iter().try_for_each(|(name, text)| directory.save(name, text).map(drop))
}

fn add_pages(command: &Command, pages: &mut Vec<(String, String)>) -> io::Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    pages.push((page.get_filename(), String::from_utf8_lossy(&text).into_owned()));
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    shown.into_iter().try_for_each(|one| add_pages(one, pages))
}
