//! From the words after a command to a machine and what is to be opened on it.

use crate::Failure;
use crate::arguments::TargetArguments;
use host::Host;
use machine::TargetSpec;
use std::path::{Path, PathBuf};
use twin::Twin;

/// The machines that a target can be on.
pub(crate) enum Where {
    /// This computer.
    Host(Host),
    /// A simulated computer.
    Twin(Box<Twin>),
}

/// Calls a generic function with whichever machine it is.
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

/// The machine and the target that the arguments name.
///
/// # Errors
/// A twin beside other targets, an unknown twin.
pub(crate) fn resolve(arguments: &TargetArguments) -> Result<(Where, TargetSpec), Failure> {
    let named: Vec<&str> = arguments.targets.iter().map(String::as_str).collect();
    let spec = TargetSpec {
        places: if named.is_empty() { vec![PathBuf::from(".")] } else { named.iter().map(PathBuf::from).collect() },
        size: arguments.size.0,
        fill_ns: None,
        destroy: arguments.destroy_data.clone(),
        destroy_signed: arguments.destroy_signature,
        chunk: arguments.chunk.unwrap_or(0),
        seed: arguments.seed,
        ..TargetSpec::default()
    };
    match named.as_slice() {
        [name] if name.starts_with("twin:") => {
            let twin = Twin::from_name(name).map_err(|error| Failure::Usage(error.to_string()))?;
            Ok((Where::Twin(Box::new(twin)), spec))
        }
        names => match names.iter().find(|name| name.starts_with("twin:")) {
            Some(name) => {
                let why = "a simulated machine stands alone as target; give its disks with twin:NAME,disks=4";
                Err(Failure::Usage(format!("{name}: {why}")))
            }
            None => Ok((Where::Host(Host::new(crate::interrupt::flag())), spec)),
        },
    }
}

/// No system call takes a longer name (`PATH_MAX` without its NUL).
const LONGEST_PATH: usize = 4095;

/// The machine that another tool's file names mean: this computer, or the one simulated machine that they name.
///
/// # Errors
/// A twin beside other targets, an unknown twin, a name that is too long.
pub(crate) fn machine_of(names: &[&Path]) -> Result<Where, Failure> {
    if let Some(long) = names.iter().find(|name| name.as_os_str().len() > LONGEST_PATH) {
        let start: String = long.to_string_lossy().chars().take(60).collect();
        let why = format!("a name has at most {LONGEST_PATH} bytes, and this one has {}; name another", long.as_os_str().len());
        return Err(Failure::Usage(format!("{start}...: {why}")));
    }
    let twin = |name: &&&Path| name.to_string_lossy().starts_with("twin:");
    let Some(name) = names.iter().find(twin) else { return Ok(Where::Host(Host::new(crate::interrupt::flag()))) };
    let name = name.to_string_lossy();
    if names.iter().any(|other| other.to_string_lossy() != name) {
        let why = "a simulated machine stands alone as target; give its disks with twin:NAME,disks=4";
        return Err(Failure::Usage(format!("{name}: {why}")));
    }
    let twin = Twin::from_name(&name).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(Where::Twin(Box::new(twin)))
}

/// Refuses a simulated machine where files are made and deleted.
///
/// # Errors
/// The name is that of a twin.
pub(crate) fn no_twin(name: &Path) -> Result<(), Failure> {
    if name.to_string_lossy().starts_with("twin:") {
        let why = "a simulated machine has no directories in which files could be made and deleted; name a directory of this computer";
        return Err(Failure::Usage(format!("{}: {why}", name.display())));
    }
    Ok(())
}
