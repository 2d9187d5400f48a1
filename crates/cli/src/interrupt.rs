//! Ctrl-C: the first ends what runs and removes test files, and says what it waits for; the second ends the program at once.

use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::flag::{register, register_conditional_shutdown};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Once};
use std::time::Duration;

/// What was interrupted ends sooner than this, unless the storage does not answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The signals that end a program and that it can handle; test files and kernel settings are put back at each of them.
const FATAL: [i32; 11] =
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF, SIGIO];

/// The fatal signals that were not ignored when the program began, as `nohup` and background jobs of a shell have it.
pub(crate) fn signals() -> &'static [i32] {
    static SIGNALS: LazyLock<Vec<i32>> =
        LazyLock::new(|| FATAL.into_iter().filter(|&signal| !host::is_ignored(signal)).collect());
    &SIGNALS
}

/// Whether one of [`signals`] has come.
static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The flag that becomes true at the first of [`signals`].
pub(crate) fn flag() -> &'static AtomicBool {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // One registration: between two of them a signal would be lost.
        let followed = Signals::new(signals()).and_then(|signals| thread("interrupt", move || follow(signals)));
        if followed.is_err() {
            without_thread();
        }
    });
    &INTERRUPTED
}

/// Where there is no thread to follow the signals, their handlers do it.
fn without_thread() {
    for &signal in signals() {
        // The order matters: the second signal finds the flag set and ends the program.
        let _ = register_conditional_shutdown(signal, 130, Arc::clone(&INTERRUPTED));
        let _ = register(signal, Arc::clone(&INTERRUPTED));
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).stack_size(64 << 10).spawn(body)
}

/// The first signal ends what runs, the second the program.
fn follow(mut signals: Signals) {
    for signal in signals.forever() {
        if signal == SIGXCPU {
            crate::console::tell("the limit on processor time (ulimit -t) is reached: raise it for longer runs");
        }
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            signal_hook::low_level::exit(130);
        }
        let _ = thread("patience", say_what_is_waited_for);
    }
}

/// Tells some time after the first signal why the program has not ended yet.
fn say_what_is_waited_for() {
    std::thread::sleep(PATIENCE);
    let waits = match host::waiting_threads() {
        0 => "for what it has begun to end".to_string(),
        1 => "for the storage, which has not answered a request".into(),
        threads => format!("for the storage, which has not answered the requests of {threads} threads"),
    };
    crate::console::tell(&format!(
        "interrupted, and waiting {waits}; Ctrl-C again leaves at once, and the next run there removes the test files"
    ));
}

/// A file that may not grow is an error of the write (EFBIG), as a full disk is, and no end of the program.
pub(crate) fn survive_file_limit() {
    // A handler of any kind takes the place of the signal's own action.
    let _ = register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}
