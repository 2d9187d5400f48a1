//! Names of simulated machines and clients.

/// Sets or replaces `KEY=VALUE[,KEY=VALUE]...` in a simulated machine's name
/// `NAME[,KEY=VALUE]...[#FILE]`.
///
/// ```
/// let name = machine::with_settings("twin:cloud,disks=2#log", "wce=on,disks=4");
/// assert_eq!(name, "twin:cloud,disks=4,wce=on#log");
/// ```
pub fn with_settings(name: &str, settings: &str) -> String {
    fn key(setting: &str) -> &str {
        setting.split('=').next().unwrap_or_default().trim()
    }
    let (machine, file) = name.split_at(name.find('#').unwrap_or(name.len()));
    let mut parts: Vec<&str> = machine.split(',').collect();
    for setting in settings.split(',').filter(|setting| !setting.trim().is_empty()) {
        match parts[1..].iter_mut().find(|part| key(part) == key(setting)) {
            Some(part) => *part = setting,
            None => parts.push(setting),
        }
    }
    parts.join(",") + file
}

/// Why clients cannot share a file, if the machine has no other reason.
pub const OWN_FILES: &str = "each client has a file of its own";

/// For clients that have no host of their own.
pub fn client_name(rank: usize) -> String {
    format!("client {}", rank + 1)
}
