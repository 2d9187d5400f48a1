//! Marks in the names of halfpower's files, to recognize leftovers of a killed run.

use crate::rng::{GOLDEN, mix};

/// Returns a random number and its hash with the inode number, which differs on a copy or on
/// another file of such a name.
///
/// ```
/// use machine::mark::{is_mark, mark};
///
/// let (inode, copy) = (77, 78);
/// assert!(is_mark(&mark(5, inode), inode));
/// assert!(!is_mark(&mark(5, inode), copy));
/// ```
pub fn mark(random: u64, inode: u64) -> String {
    let hash = mix(random ^ inode.wrapping_mul(GOLDEN)) >> 32;
    format!("{random:016x}-{hash:08x}")
}

pub fn is_mark(text: &str, inode: u64) -> bool {
    let random = text.split_once('-').and_then(|(random, _)| u64::from_str_radix(random, 16).ok());
    random.is_some_and(|random| mark(random, inode) == text)
}

/// Returns the name before a rename. Before creation use the directory's inode number, which is
/// valid while the file is empty.
pub fn part_name(random: u64, inode: u64) -> String {
    format!(".halfpower-{}.part", mark(random, inode))
}

/// Returns whether halfpower created the file there for a later rename.
pub fn is_part(name: &str, directory: u64, inode: u64, bytes: u64) -> bool {
    let mark = name.strip_prefix(".halfpower-").and_then(|rest| rest.strip_suffix(".part"));
    mark.is_some_and(|mark| is_mark(mark, inode) || bytes == 0 && is_mark(mark, directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_its_own_inode_or_is_empty_with_its_directorys() {
        let (directory, own) = (2, 77);
        assert!(is_part(&part_name(5, directory), directory, own, 0));
        assert!(
            !is_part(&part_name(5, directory), directory, own, 1),
            "a file with content needs its own inode"
        );
        assert!(is_part(&part_name(5, own), directory, own, 1));
        assert!(!is_part(&part_name(5, own), directory, own + 1, 0), "a copy");
        for name in [
            ".halfpower-0123456789abcdef.part",
            ".halfpower-0123456789abcdef-01234567.part",
            ".halfpower-.part",
        ] {
            assert!(!is_part(name, directory, own, 0), "{name}");
        }
    }
}
