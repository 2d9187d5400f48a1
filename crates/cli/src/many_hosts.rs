//! `mpirun ... halfpower COMMAND`.

#[cfg(feature = "mpi")]
mod mpi;

use crate::commands::{Cli, Command};
use crate::context::Context;
use crate::failure::Failure;
use hosts::Launch;

pub(crate) fn launch() -> Option<Launch> {
    Launch::of(|name| std::env::var(name).ok())
}

/// Only rank 0 reports the reason.
pub(crate) fn silently(launch: &Launch, failure: Failure) -> Failure {
    match failure {
        failure if launch.leads() => failure,
        Failure::Usage(_) => Failure::Printed(2),
        Failure::Run(_) => Failure::Printed(1),
        Failure::Interrupted => Failure::Printed(130),
        printed => printed,
    }
}

pub(crate) fn run(context: &Context, cli: Cli, launch: &Launch) -> Result<(), Failure> {
    let measures = matches!(
        cli.command,
        Command::Run(_)
            | Command::Sweep(_)
            | Command::Study(_)
            | Command::Ior(_)
            | Command::Mdtest(_)
            | Command::Metadata(_)
    );
    if !measures {
        return Err(silently(
            launch,
            Failure::Usage(format!(
                "{} started {} copies of this command: only halfpower run, sweep, study, metadata, ior and mdtest work with many clients; start it once, without {}",
                launch.launcher, launch.processes, launch.launcher
            )),
        ));
    }
    measure(context, cli, launch).map_err(|failure| silently(launch, failure))
}

#[cfg(not(feature = "mpi"))]
fn measure(_: &Context, _: Cli, launch: &Launch) -> Result<(), Failure> {
    Err(Failure::Usage(format!(
        "{} started {} copies, and this halfpower was built without MPI: they would not know of one another; build it with cargo build --release --features mpi (Debian: libopenmpi-dev, libclang-dev)",
        launch.launcher, launch.processes
    )))
}

#[cfg(feature = "mpi")]
use mpi::measure;
