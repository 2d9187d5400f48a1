//! Ctrl-C: the first ends what runs and removes test files, the second ends the program at once.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag::{register, register_conditional_shutdown};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

/// The signals that end a program.
pub(crate) const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

static FLAG: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in SIGNALS {
        // The order matters: the second signal finds the flag set and ends the program.
        let _ = register_conditional_shutdown(signal, 130, Arc::clone(&flag));
        let _ = register(signal, Arc::clone(&flag));
    }
    flag
});

/// The flag that becomes true at the first of [`SIGNALS`].
pub(crate) fn flag() -> &'static AtomicBool {
    &FLAG
}

/// A limit on file sizes is an error of the write that meets it, not the end of the program.
pub(crate) fn bear_file_size_limits() {
    // The handler does nothing: where there is one, the write fails with EFBIG.
    let _ = register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}
