//! Facts about a target that is not open.

use super::{Roots, under};
use machine::{Error, Layer, Result, Share, TargetFacts, TargetKind, TargetSpec};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Enough facts for a plan.
pub fn foreseen(spec: &TargetSpec, roots: &Roots) -> Result<TargetFacts> {
    let first = spec.places.first().map_or(Path::new("."), PathBuf::as_path);
    let kind = std::fs::metadata(first).map(|metadata| metadata.file_type());
    if kind.is_ok_and(|kind| !kind.is_dir() && !kind.is_file() && !kind.is_block_device()) {
        let why = "it is neither a directory nor a regular file nor a block device";
        return Err(Error::refused(first.display().to_string(), why, "name one of these"));
    }
    let under = under(roots, first)?;
    let kind = match (first.is_dir(), first.is_file()) {
        _ if spec.places.len() > 1 => TargetKind::Stripe,
        (true, _) => TargetKind::TestFile,
        (_, true) => TargetKind::File,
        _ => TargetKind::Device,
    };
    // Each of several places has its share of the bytes.
    let count = spec.places.len().max(1) as f64;
    let with_data = if spec.raid5.is_some() { (count - 1.0).max(1.0) } else { count };
    let own = Share { reads: 1.0 / count, writes: 1.0 / with_data };
    let mut layers = Vec::new();
    for layer in spec.places.iter().skip(1).try_fold(under.layers, |mut all, place| {
        all.extend(super::under(roots, place)?.layers);
        Result::Ok(all)
    })? {
        super::join(&mut layers, Layer { share: layer.share.times(own), ..layer });
    }
    let named = spec.places.iter().all(|place| spec.destroy.contains(place));
    let chunk = if spec.chunk == 0 { crate::DEFAULT_CHUNK } else { spec.chunk };
    Ok(TargetFacts {
        writable: kind == TargetKind::TestFile || first.is_dir() || named,
        direct: !under.in_memory,
        physical_block_bytes: under.physical_block_bytes,
        block_bytes: under.block_bytes,
        members: spec.places.len() as u32,
        chunk_bytes: (spec.places.len() > 1).then_some(chunk),
        raid5: spec.raid5,
        in_memory: under.in_memory,
        layers,
        ..TargetFacts::new(first.display().to_string(), kind, spec.size.unwrap_or(u64::MAX >> 1))
    })
}
