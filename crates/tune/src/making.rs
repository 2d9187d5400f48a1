//! Commands that recreate an array or a file system for a create-time setting. Each destroys
//! existing data.

use machine::units::{KIB, parse_size};
use machine::{Alternative, Keep, Knob, Layer, Matters, TargetFacts};

/// A stride is counted in blocks.
const EXT4_BLOCK: u64 = 4 * KIB;

const CHUNKS: [&str; 4] = ["16k", "64k", "256k", "1m"];

pub const STRIPE_UNIT: &str = "stripe_unit";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stripe {
    chunk_bytes: u64,
    chunks: u64,
}

impl Stripe {
    fn of(layers: &[Layer]) -> Option<Stripe> {
        layers.iter().find_map(|layer| {
            let array = layer.facts.array.as_ref()?;
            let chunks = array.data_members.filter(|&chunks| chunks > 0)?;
            Some(Stripe { chunk_bytes: array.chunk_bytes?, chunks })
        })
    }
}

fn mkfs(file_system: &str, stripe: Option<Stripe>, device: &str) -> Option<String> {
    let options = match (file_system, stripe) {
        ("ext4" | "ext3", Some(Stripe { chunk_bytes, chunks }))
            if chunk_bytes.is_multiple_of(EXT4_BLOCK) =>
        {
            let stride = chunk_bytes / EXT4_BLOCK;
            format!(" -b 4096 -E stride={stride},stripe_width={}", stride * chunks)
        }
        ("xfs", Some(Stripe { chunk_bytes, chunks })) if chunk_bytes.is_multiple_of(EXT4_BLOCK) => {
            format!(" -d su={}k,sw={chunks}", chunk_bytes / KIB)
        }
        (_, Some(_)) => return None,
        (_, None) => String::new(),
    };
    Some(format!("mkfs.{file_system}{options} {device}"))
}

fn keep_mkfs(line: String) -> Keep {
    Keep {
        place: "when recreating the file system (destroys its data: copy them first)".into(),
        line,
    }
}

pub(crate) fn aligned_partition(layers: &[Layer]) -> Vec<Keep> {
    let partition = Keep {
        place: "partition table (destroys the partition's data: copy them first)".into(),
        line: "parted -a optimal DISK mkpart data 1MiB 100%".into(),
    };
    let file_system = layers.iter().find_map(|layer| layer.facts.file_system.as_ref());
    let made = file_system.and_then(|one| mkfs(&one.fs_type, Stripe::of(layers), "PARTITION"));
    [Some(partition), made.map(keep_mkfs)].into_iter().flatten().collect()
}

/// `None` unless halfpower stripes the target.
pub fn stripe_unit(facts: &TargetFacts) -> Option<Knob> {
    let is_stripe =
        facts.members > 1 && facts.raid5.is_none() && facts.shared_by_members().is_none();
    let present = facts.chunk_bytes.filter(|_| is_stripe)?;
    let present = crate::knobs::size(present);
    let values = CHUNKS.iter().filter(|&&value| value != present);
    Some(Knob {
        name: STRIPE_UNIT.into(),
        of: "the stripe".into(),
        about: "chunk size in bytes of the stripe over the members".into(),
        alternatives: values.map(|value| stripe_unit_of(facts, value)).collect(),
        present,
        matters: Matters::Always,
        resets: Vec::new(),
    })
}

/// Includes commands that create such an array and its file system.
pub fn stripe_unit_of(facts: &TargetFacts, value: &str) -> Alternative {
    let bytes = parse_size(value).unwrap_or(0);
    let members = u64::from(facts.members);
    let each_its_device = facts.devices.len() == facts.members as usize;
    let devices: Vec<String> = if each_its_device {
        facts.devices.iter().map(|name| format!("/dev/{name}")).collect()
    } else {
        (1..=members).map(|number| format!("DEVICE{number}")).collect()
    };
    let array = Keep {
        place: "when recreating the array (destroys the data on the devices: copy them first)"
            .into(),
        line: format!(
            "mdadm --create /dev/mdN --level=0 --raid-devices={members} --chunk={}K {}",
            bytes / KIB,
            devices.join(" ")
        ),
    };
    let stripe = Stripe { chunk_bytes: bytes, chunks: members };
    let made = ["ext4", "xfs"].into_iter().filter_map(|name| mkfs(name, Some(stripe), "/dev/mdN"));
    let keep = if bytes < KIB {
        Vec::new()
    } else {
        [array].into_iter().chain(made.map(keep_mkfs)).collect()
    };
    Alternative {
        value: value.into(),
        keep,
        option: Some(format!("--chunk {value}")),
        ..Alternative::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::{ArrayFacts, FileSystemFacts, LayerKind};

    #[test]
    fn mkfs_gets_the_stripe_geometry() {
        let mut md = Layer::new(LayerKind::Volume, "md0");
        md.facts.array =
            Some(ArrayFacts { data_members: Some(3), chunk_bytes: Some(65_536), missing: 0 });
        let lines = |fs_type: &str, below: &[Layer]| {
            let mut top = Layer::new(LayerKind::FileSystem, "a file system");
            let facts = FileSystemFacts { fs_type: fs_type.into(), ..Default::default() };
            top.facts.file_system = Some(facts);
            let layers = [&[top], below].concat();
            aligned_partition(&layers).into_iter().map(|keep| keep.line).collect::<Vec<_>>()
        };
        let striped = |fs_type| lines(fs_type, std::slice::from_ref(&md));
        assert_eq!(striped("ext4")[1], "mkfs.ext4 -b 4096 -E stride=16,stripe_width=48 PARTITION");
        assert_eq!(striped("xfs")[1], "mkfs.xfs -d su=64k,sw=3 PARTITION");
        assert_eq!(striped("vfat").len(), 1, "it takes no such option");
        assert_eq!(lines("vfat", &[])[1], "mkfs.vfat PARTITION");
        assert_eq!(aligned_partition(&[]).len(), 1, "a device has no file system");
    }
}
