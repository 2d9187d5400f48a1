use crate::linux::facts::{self, Roots};
use crate::linux::sys;
use machine::{Layer, Result, Share, TargetFacts, TargetKind};
use std::path::PathBuf;

/// Without any, takes the current directory; the free bytes are the first's.
pub fn directory_facts(directories: &[PathBuf]) -> Result<TargetFacts> {
    let here = [PathBuf::from(".")];
    let directories = if directories.is_empty() { &here[..] } else { directories };
    let names: Vec<String> =
        directories.iter().map(|directory| directory.display().to_string()).collect();
    let mut all = TargetFacts {
        direct: false,
        direct_refused: Some(
            "files are created, read and deleted as a whole, through the file-system cache".into(),
        ),
        direct_align_bytes: 1,
        physical_block_bytes: 0,
        block_bytes: 0,
        members: directories.len() as u32,
        ..TargetFacts::new(
            names.join(", "),
            TargetKind::Directory,
            sys::free_bytes(&directories[0]).ok().flatten().unwrap_or(0),
        )
    };
    for directory in directories {
        let under = facts::under(&Roots::default(), directory)?;
        all.physical_block_bytes = all.physical_block_bytes.max(under.physical_block_bytes);
        all.block_bytes = all.block_bytes.max(under.block_bytes);
        all.in_memory |= under.in_memory;
        let devices = under
            .devices
            .counted
            .into_iter()
            .map(|device| device.name)
            .filter(|name| !all.devices.contains(name));
        all.devices.extend(devices.collect::<Vec<_>>());
        let own = 1.0 / directories.len() as f64;
        let own = Share { reads: own, writes: own };
        for layer in under.layers {
            facts::join(&mut all.layers, Layer { share: layer.share.times(own), ..layer });
        }
        let warnings = under.warnings.into_iter().filter(|warning| !all.warnings.contains(warning));
        all.warnings.extend(warnings.collect::<Vec<_>>());
    }
    Ok(all)
}
