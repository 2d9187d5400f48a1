//! `halfpower twin`: lists, validates, changes and fits simulated machines.

mod cache;
mod document;
mod fit;
mod fit_sustained;
mod show;
mod validate;
mod whatif;

use crate::context::Context;
use crate::failure::Failure;
use clap::{Args, Subcommand};

/// Options of `twin`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Clone)]
enum Command {
    /// List the machines and the settings that may follow their names
    List(show::ListArguments),
    /// Show one machine: its parts, and every number with its source
    Show(show::ShowArguments),
    /// Compare every published point of the 1997 study with the simulation
    Validate(validate::Arguments),
    /// Compare a machine with a changed copy of itself
    Whatif(whatif::Arguments),
    /// Calibrate a machine to the results of a real one; a random third of the points is held out
    /// and judges the fit
    Fit(fit::Arguments),
    /// Predict the effect of a memory cache on a block trace or a workload, by cache size
    Cache(cache::Arguments),
}

pub(crate) fn twin(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::List(arguments) => show::list(context, arguments),
        Command::Show(arguments) => show::show(context, arguments),
        Command::Validate(arguments) => validate::validate(context, arguments),
        Command::Whatif(arguments) => whatif::whatif(context, arguments),
        Command::Fit(arguments) => fit::fit(context, arguments),
        Command::Cache(arguments) => cache::cache(context, arguments),
    }
}

impl From<twin::Error> for Failure {
    fn from(error: twin::Error) -> Self {
        Failure::Usage(error.to_string())
    }
}

impl From<predict::Error> for Failure {
    fn from(error: predict::Error) -> Self {
        match error {
            predict::Error::Run(why) => Failure::from(why),
            predict::Error::Broken(_) | predict::Error::File(_) => Failure::Run(error.to_string()),
            other => Failure::Usage(other.to_string()),
        }
    }
}
