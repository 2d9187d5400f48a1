use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(
        "the kernel's trace points are not there: as root, mount -t tracefs nodev /sys/kernel/tracing; without them, strace -f -ttt -T -o app.strace COMMAND records system calls"
    )]
    NotMounted,
    #[error(
        "no permission to make a trace instance in /sys/kernel/tracing/instances ({0}): run it as root, outside of containers that hide tracefs; without that, strace -f -ttt -T -o app.strace COMMAND records the system calls of your own programs"
    )]
    Permission(io::Error),
    #[error(
        "this process is in a PID namespace of its own, and the kernel's trace numbers processes outside of it: record from the host, with --pid or --cgroup"
    )]
    Namespace,
    #[error("the kernel does not describe {0} of its trace events as this program knows it")]
    Format(String),
    #[error("{}: {}", shown(.0), .1)]
    Command(Vec<OsString>, io::Error),
    #[error("--pid {0}: no such process ({1}); name one that runs")]
    Process(u32, io::Error),
    #[error("--cgroup {}: no control group ({}); name a directory with cgroup.procs", .0.display(), .1)]
    ControlGroup(PathBuf, io::Error),
    #[error("--device {}: {}; name a block device, such as /dev/sda", .0.display(), .1)]
    Device(PathBuf, io::Error),
    #[error("there is no process to record; name a group that has one")]
    NoProcesses,
    #[error("the kernel's trace cannot be set or read: {0}")]
    Tracing(#[from] io::Error),
    #[error("the trace cannot be written: {0}")]
    Trace(#[from] apptrace::Error),
}

fn shown(words: &[OsString]) -> String {
    words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
}

impl RecordError {
    pub(super) fn of_instance(error: io::Error) -> RecordError {
        match error.kind() {
            io::ErrorKind::NotFound => RecordError::NotMounted,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                RecordError::Permission(error)
            }
            _ => RecordError::Tracing(error),
        }
    }

    /// Another command line would help, rather than another time.
    pub fn is_usage(&self) -> bool {
        !matches!(self, RecordError::Tracing(_) | RecordError::Trace(_))
    }
}
