//! Ctrl-C: what runs ends in order, and test files are removed. A second one ends the program at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The flag that becomes true at the first interrupt (SIGINT, SIGTERM or SIGHUP).
pub(crate) fn flag() -> &'static AtomicBool {
    let flag: &'static Arc<AtomicBool> = Box::leak(Box::new(Arc::new(AtomicBool::new(false))));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        // The order matters: the second signal finds the flag set and ends the program.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(flag));
        let _ = signal_hook::flag::register(signal, Arc::clone(flag));
    }
    flag
}
