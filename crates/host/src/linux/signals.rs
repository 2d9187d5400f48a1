//! Signals as this process inherited them.

/// Whether a signal was ignored when this process began, as `nohup` and shells do for background jobs; ask before handlers are set.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: with no new action, sigaction(2) only writes the present one into a structure that it may.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut present) == 0 && present.sa_sigaction == libc::SIG_IGN
    }
}
