/// Ignored at program start (`nohup`, shell background jobs); call before installing handlers.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: without a new action, sigaction(2) only writes the current one into a valid
    // structure.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut present) == 0
            && present.sa_sigaction == libc::SIG_IGN
    }
}
