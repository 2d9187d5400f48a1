use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use host::Host;
use machine::units::parse_size;
use machine::{Engine, Machine, Raid5, TargetSpec};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use twin::Twin;
use twin::settings::split_file;
use workload::Pattern;

/// `None` if halfpower chooses the size.
#[derive(Clone, Copy)]
pub(crate) struct AutoSize(pub(crate) Option<u64>);

/// The target of a measurement.
#[derive(Args, Clone)]
pub(crate) struct TargetArguments {
    /// A directory (halfpower creates a test file in it), a file, a block device, several of these
    /// (a stripe), or twin:NAME [default: .]
    #[arg(value_name = "TARGET", help_heading = "Arguments", add = ArgValueCompleter::new(crate::completer::Targets))]
    pub(crate) targets: Vec<PathBuf>,
    /// Size of the test file, or how much of an existing file or device to use
    #[arg(long, value_name = "SIZE|auto", value_parser = auto_size, default_value = "auto")]
    pub(crate) size: AutoSize,
    /// Write at most this much in all, with the making of the test file: a command that is known to
    /// write more is refused, and others end there
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_written: Option<u64>,
    /// Allow overwriting this existing file or device; it must also be the target
    #[arg(long, value_name = "NAME")]
    pub(crate) destroy_data: Vec<PathBuf>,
    /// Allow overwriting it even if it holds a file system or a partition table, or if the kernel
    /// does not report whether it is in use
    #[arg(long, hide_short_help = true)]
    pub(crate) destroy_signature: bool,
    /// Stripe chunk over several targets, or over a simulated machine's disks
    /// [default: 64k, or the simulated machine's own]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    pub(crate) chunk: Option<u64>,
    /// Layout of several targets: 0 for a plain stripe, 5 for a stripe with parity, which halfpower
    /// computes [default: 0]
    #[arg(long, value_name = "LEVEL", value_parser = ["0", "5"], hide_short_help = true)]
    pub(crate) raid: Option<String>,
    /// With --raid 5: this target has failed (the first is 0); its data are reconstructed from the
    /// others
    #[arg(long, value_name = "N", requires = "raid", hide_short_help = true)]
    pub(crate) failed: Option<u32>,
    /// With --failed: the target replaces the failed one. Each write reconstructs the replacement's
    /// data; the other targets are only read
    #[arg(long, requires = "failed", hide_short_help = true)]
    pub(crate) rebuild: bool,
    /// Seed of everything random: the same seed gives the same sequence of requests
    #[arg(long, default_value_t = 1, hide_short_help = true)]
    pub(crate) seed: u64,
}

fn auto_size(text: &str) -> Result<AutoSize, String> {
    if text == "auto" {
        Ok(AutoSize(None))
    } else {
        parse_size(text).map(|size| AutoSize(Some(size)))
    }
}

pub(crate) enum Where {
    Host(Host),
    Twin(Box<Twin>),
}

impl Where {
    pub(crate) fn engines(&self) -> Vec<Engine> {
        match self {
            Where::Host(machine) => machine.capabilities().engines,
            Where::Twin(machine) => machine.capabilities().engines,
        }
    }
}

macro_rules! on_machine {
    ($place:expr, |$machine:ident| $body:expr) => {
        match $place {
            $crate::target::Where::Host($machine) => $body,
            $crate::target::Where::Twin(twin) => {
                let $machine = *twin;
                $body
            }
        }
    };
}
pub(crate) use on_machine;

pub(crate) fn is_twin(name: &Path) -> bool {
    name.as_os_str().as_encoded_bytes().starts_with(b"twin:")
}

pub(crate) fn resolve(
    context: &Context,
    arguments: &TargetArguments,
) -> Result<(Where, TargetSpec), Failure> {
    let mut places = arguments.targets.clone();
    if places.is_empty() {
        places.push(PathBuf::from("."));
    }
    if let (Some(name), true) = (places.iter().find(|name| is_twin(name)), places.len() > 1) {
        return Err(not_alone(name));
    }
    places.iter().try_for_each(|name| check_target(name))?;
    context.writes.allow(arguments.max_written);
    context.writes.destroys(&arguments.destroy_data);
    let machine = machine_of(context, &places.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    let size = size(arguments, &places)?;
    let spec = TargetSpec {
        places,
        size,
        fill_ns: None,
        destroy: arguments.destroy_data.clone(),
        destroy_signed: arguments.destroy_signature,
        chunk: arguments.chunk.unwrap_or(0),
        raid5: raid5(arguments)?,
        // A replacement's content is reconstructed from the others.
        as_is: arguments.rebuild,
        seed: arguments.seed,
        ..TargetSpec::default()
    };
    Ok((machine, spec))
}

/// By default a test file leaves at least half of what may be written to the runs.
fn size(arguments: &TargetArguments, places: &[PathBuf]) -> Result<Option<u64>, Failure> {
    let of_directory = places.iter().any(|place| place.is_dir());
    let Some(max) = arguments.max_written.filter(|_| of_directory) else {
        return Ok(arguments.size.0);
    };
    if arguments.size.0.is_some() {
        return Ok(arguments.size.0);
    }
    let free = host::files::directory_facts(places)?.size_bytes;
    Ok(Some(((max.min(free) / 2) >> 20 << 20).max(1 << 20)))
}

fn check_target(name: &Path) -> Result<(), Failure> {
    let Some(text) = name.to_str().filter(|_| !is_twin(name) && !name.exists()) else {
        return Ok(());
    };
    let is_value = parse_size(text).is_ok()
        || ["read", "write", "mix"].contains(&text)
        || Pattern::from_str(text).is_ok()
        || Engine::ALL.iter().any(|engine| engine.name() == text);
    let ends = |end: &&&str| text.ends_with(**end);
    let hint = if is_value {
        "an option takes one value, and a list of them has commas: --request 4k,64k".into()
    } else if text.contains("://") {
        "only files, directories and block devices can be measured; mount it and name the directory"
            .into()
    } else if text.starts_with('~') {
        "the shell has not replaced ~; write $HOME".into()
    } else if let Some(end) = [".json", ".html", ".prom", ".csv"].iter().find(ends) {
        format!(
            "name what to measure; if it is to be the output: --json prints on standard output, so write --json > out{end}"
        )
    } else {
        return Ok(());
    };
    Err(Failure::Usage(format!("{text}: no such file, directory or device; {hint}")))
}

fn raid5(arguments: &TargetArguments) -> Result<Option<Raid5>, Failure> {
    match (arguments.raid.as_deref(), arguments.failed) {
        (Some("5"), failed) => Ok(Some(Raid5 { failed, rebuild: arguments.rebuild })),
        (_, Some(failed)) => {
            let why = "a stripe without a member has lost its data; give --raid 5 too";
            Err(Failure::Usage(format!("--failed {failed}: {why}")))
        }
        _ => Ok(None),
    }
}

fn not_alone(name: &Path) -> Failure {
    let why = "a simulated machine must be the only target; choose its disks with twin:NAME,disks=4 and its files with twin:NAME#FILE";
    Failure::Usage(format!("{}: {why}", name.display()))
}

/// `PATH_MAX` without its NUL.
const MAX_PATH_BYTES: usize = 4095;

pub(crate) fn check_length(name: &Path) -> Result<(), Failure> {
    let bytes = name.as_os_str().len();
    if bytes <= MAX_PATH_BYTES {
        return Ok(());
    }
    let start: String = name.to_string_lossy().chars().take(60).collect();
    Err(Failure::Usage(format!(
        "{start}...: this name has {bytes} bytes, and a path has at most {MAX_PATH_BYTES}; use a shorter one"
    )))
}

pub(crate) fn machine_of(context: &Context, names: &[&Path]) -> Result<Where, Failure> {
    names.iter().try_for_each(|name| check_length(name))?;
    let Some(name) = names.iter().find(|name| is_twin(name)) else {
        return Ok(Where::Host(
            Host::new(crate::interrupt::flag()).allowing(context.writes.allowance()),
        ));
    };
    let machine = |name: &Path| split_file(&name.to_string_lossy()).0.to_owned();
    if names.iter().any(|other| machine(other) != machine(name)) {
        return Err(not_alone(name));
    }
    let twin = Twin::from_name(&name.to_string_lossy())
        .map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(Where::Twin(Box::new(twin.allowing(context.writes.allowance()))))
}

pub(crate) fn machine_file(name: &Path) -> Option<PathBuf> {
    let name = name.to_str()?.strip_prefix("twin:")?;
    let machine = split_file(name).0.split(',').next()?;
    machine.ends_with(".toml").then(|| PathBuf::from(machine))
}

pub(crate) fn no_twin(name: &Path) -> Result<(), Failure> {
    check_length(name)?;
    if is_twin(name) {
        let why = "a simulated machine has no directories to create files in; name a directory of this computer";
        return Err(Failure::Usage(format!("{}: {why}", name.display())));
    }
    Ok(())
}

pub(crate) fn results_at(path: &Path) -> Result<PathBuf, Failure> {
    let file = results_in(path);
    if file.is_dir() {
        return Err(Failure::Usage(format!(
            "{}: this directory holds no results.json and no sustained.json; name the one that a study wrote, or a file",
            file.display()
        )));
    }
    Ok(file)
}

pub(crate) fn results_in(path: &Path) -> PathBuf {
    let inside = ["", "halfpower-out"].into_iter().flat_map(|within| {
        ["results.json", "sustained.json"].map(|name| path.join(within).join(name))
    });
    inside.into_iter().find(|file| file.is_file()).unwrap_or_else(|| path.to_owned())
}
