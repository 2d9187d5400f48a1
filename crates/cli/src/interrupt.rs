//! Ctrl-C: the first stops the run and removes test files; the second ends the program.

use crate::console::Console;
use libc::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGPWR, SIGQUIT, SIGRTMAX, SIGRTMIN, SIGSTKFLT,
    SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::flag::{register, register_conditional_shutdown};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Once, OnceLock};
use std::time::Duration;

/// An interrupted run ends within this unless the storage does not respond.
const PATIENCE: Duration = Duration::from_secs(1);

/// Without real-time signals and those for the program's own faults.
const FATAL: [i32; 13] = [
    SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF,
    SIGIO, SIGPWR, SIGSTKFLT,
];

/// Without those ignored at the start, as by `nohup` and background shell jobs.
pub(crate) fn signals() -> &'static [i32] {
    static SIGNALS: LazyLock<Vec<i32>> = LazyLock::new(|| {
        FATAL
            .into_iter()
            .chain(SIGRTMIN()..=SIGRTMAX())
            .filter(|&signal| !host::is_ignored(signal))
            .collect()
    });
    &SIGNALS
}

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

static CONSOLE: OnceLock<Console> = OnceLock::new();

pub(crate) fn report_to(console: &Console) {
    let _ = CONSOLE.set(console.clone());
}

fn tell(message: &str) {
    if let Some(console) = CONSOLE.get() {
        console.tell(message);
    }
}

pub(crate) fn flag() -> &'static AtomicBool {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // Register only once: a signal between two registrations would be lost.
        let followed = Signals::new(signals())
            .and_then(|signals| thread("interrupt", move || follow(signals)));
        if followed.is_err() {
            without_thread();
        }
    });
    &INTERRUPTED
}

fn without_thread() {
    for &signal in signals() {
        // The order matters: the second signal finds the flag set and ends the program.
        let _ = register_conditional_shutdown(signal, 130, Arc::clone(&INTERRUPTED));
        let _ = register(signal, Arc::clone(&INTERRUPTED));
    }
}

fn thread(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).stack_size(64 << 10).spawn(body)
}

fn follow(mut signals: Signals) {
    for signal in signals.forever() {
        if signal == SIGXCPU {
            tell("the limit on processor time (ulimit -t) is reached: raise it for longer runs");
        }
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            signal_hook::low_level::exit(130);
        }
        let _ = thread("patience", say_what_is_waited_for);
    }
}

fn say_what_is_waited_for() {
    std::thread::sleep(PATIENCE);
    let waits = match host::waiting_threads() {
        0 => "for what it has begun to end".to_string(),
        1 => "for the storage, which has not answered a request".into(),
        threads => {
            format!("for the storage, which has not answered the requests of {threads} threads")
        }
    };
    tell(&format!(
        "interrupted, and waiting {waits}; Ctrl-C again leaves at once, and the next run there removes the test files"
    ));
}

/// Makes the file size limit a write error (EFBIG) instead of a fatal signal.
pub(crate) fn survive_file_limit() {
    // Any handler replaces the default action.
    let _ = register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}
