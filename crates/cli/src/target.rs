//! From the words after a command to a machine and what is to be opened on it.

use crate::Failure;
use crate::arguments::TargetArguments;
use host::Host;
use machine::TargetSpec;
use std::path::PathBuf;

/// The machines that a target can be on.
pub(crate) enum Where {
    /// This computer.
    Host(Host),
}

/// Calls a generic function with whichever machine it is.
macro_rules! on_machine {
    ($place:expr, |$machine:ident| $body:expr) => {
        match $place {
            $crate::target::Where::Host($machine) => $body,
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
        chunk: arguments.chunk,
        seed: arguments.seed,
        ..TargetSpec::default()
    };
    match named.iter().find_map(|name| name.strip_prefix("twin:")) {
        Some(name) => {
            Err(Failure::Usage(format!("twin:{name}: a simulated machine stands alone as target; give its disks with twin:{name},disks=4")))
        }
        None => Ok((Where::Host(Host::new(crate::interrupt::flag())), spec)),
    }
}
