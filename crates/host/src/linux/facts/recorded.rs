//! Real or recorded system call results.

use super::{Roots, extents, text};
use std::path::Path;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Calls {
    pub(super) block_bytes: Option<u32>,
    /// All, and those available to an ordinary user.
    pub(super) blocks: Option<(u64, u64)>,
    pub(super) extents: Option<u32>,
}

impl Calls {
    pub(super) fn of(roots: &Roots, path: &Path) -> Calls {
        match &roots.calls {
            Some(record) => of_record(&text(record).unwrap_or_default(), path),
            None if roots.is_this_machine() => of_this_machine(path),
            None => Calls::default(),
        }
    }

    pub(super) fn free_percent(&self) -> Option<f64> {
        // ramfs, and tmpfs without a limit, report zero blocks.
        self.blocks
            .filter(|(all, _)| *all > 0)
            .map(|(all, available)| available as f64 / all as f64 * 100.0)
    }
}

fn of_this_machine(path: &Path) -> Calls {
    let stat = rustix::fs::statvfs(path).ok();
    Calls {
        block_bytes: stat.as_ref().map(|stat| stat.f_bsize as u32),
        blocks: stat.map(|stat| (stat.f_blocks, stat.f_bavail)),
        extents: extents::count(path),
    }
}

/// Finds the path or its nearest parent; extents only of the path itself.
fn of_record(record: &str, path: &Path) -> Calls {
    let lines = record.lines().filter_map(|line| {
        line.split_once(" /").map(|(values, rest)| (values, format!("/{rest}")))
    });
    let above = lines.filter(|(_, own)| path.starts_with(own));
    let Some((values, own)) = above.max_by_key(|(_, own)| Path::new(own).components().count())
    else {
        return Calls::default();
    };
    let value = |name: &str| {
        let of_name =
            |one: &str| one.split_once('=').filter(|(key, _)| *key == name)?.1.parse::<u64>().ok();
        values.split_whitespace().find_map(of_name)
    };
    let small = |name: &str| value(name).and_then(|value| u32::try_from(value).ok());
    Calls {
        block_bytes: small("block_bytes"),
        blocks: value("blocks").zip(value("available")),
        extents: small("extents").filter(|_| path == Path::new(&own)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_record_applies_except_its_extents() {
        let record = "block_bytes=4096 blocks=100 available=40 /\nblock_bytes=512 blocks=0 available=0 extents=3 /var/a file\nnonsense\n";
        let reported = |path: &str| of_record(record, Path::new(path));
        assert_eq!(
            (
                reported("/home").block_bytes,
                reported("/home").free_percent(),
                reported("/home").extents
            ),
            (Some(4096), Some(40.0), None)
        );
        let file = reported("/var/a file");
        assert_eq!(
            (file.block_bytes, file.free_percent(), file.extents),
            (Some(512), None, Some(3))
        );
        assert_eq!(of_record("", Path::new("/")), Calls::default());
    }
}
