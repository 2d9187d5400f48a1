//! Commands that make an array or a file system anew: what keeps a setting that is chosen once. Each loses what is there.

use machine::units::{KIB, parse_size};
use machine::{Alternative, Keep, Knob, Layer, LayerKind, Matters, TargetFacts};

/// The block of ext4 that its stride is counted in.
const EXT4_BLOCK: u64 = 4 * KIB;

/// Chunks worth trying.
const CHUNKS: [&str; 4] = ["16k", "64k", "256k", "1m"];

/// The name of the knob of a target of several places.
pub const STRIPE_UNIT: &str = "stripe_unit";

/// Data in rows of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stripe {
    chunk_bytes: u64,
    /// Chunks of data in a row.
    chunks: u64,
}

impl Stripe {
    /// That of an array of md among the layers.
    fn of(layers: &[Layer]) -> Option<Stripe> {
        layers.iter().find_map(|layer| {
            let array = layer.facts.array.as_ref()?;
            let chunks = array.data_members.filter(|&chunks| chunks > 0)?;
            Some(Stripe { chunk_bytes: array.chunk_bytes?, chunks })
        })
    }
}

/// The command that makes a file system so that it knows the rows below it; none of a file system that takes no such option.
fn mkfs(file_system: &str, stripe: Option<Stripe>, device: &str) -> Option<String> {
    let options = match (file_system, stripe) {
        ("ext4" | "ext3", Some(Stripe { chunk_bytes, chunks })) if chunk_bytes.is_multiple_of(EXT4_BLOCK) => {
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
    Keep { place: "where the file system is made anew (what is on it is lost: copy it first)".into(), line }
}

/// What moves a partition to a multiple of 4 KiB, and makes the file system of it that is there now.
pub(crate) fn aligned_partition(layers: &[Layer]) -> Vec<Keep> {
    let partition = Keep {
        place: "partition table (the data on it are lost: copy them first)".into(),
        line: "parted -a optimal DISK mkpart data 1MiB 100%".into(),
    };
    let file_system = layers.iter().find(|layer| layer.kind == LayerKind::FileSystem);
    let name = file_system.and_then(|layer| layer.name.split(' ').next());
    let made = name.and_then(|name| mkfs(name, Stripe::of(layers), "PARTITION"));
    [Some(partition), made.map(keep_mkfs)].into_iter().flatten().collect()
}

/// The knob of a target of several places, over which halfpower stripes.
pub fn stripe_unit(facts: &TargetFacts) -> Option<Knob> {
    let present = facts.chunk_bytes.filter(|_| facts.members > 1 && facts.raid5.is_none())?;
    let present = crate::knobs::size(present);
    let values = CHUNKS.iter().filter(|&&value| value != present);
    Some(Knob {
        name: STRIPE_UNIT.into(),
        of: "the stripe".into(),
        about: "bytes of a chunk of the stripe over the places".into(),
        alternatives: values.map(|value| stripe_unit_of(facts, value)).collect(),
        present,
        matters: Matters::Always,
        resets: Vec::new(),
    })
}

/// A value of that knob, with what makes an array and its file system so.
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
        place: "where the array is made anew (what is on the devices is lost: copy it first)".into(),
        line: format!(
            "mdadm --create /dev/mdN --level=0 --raid-devices={members} --chunk={}K {}",
            bytes / KIB,
            devices.join(" ")
        ),
    };
    let stripe = Stripe { chunk_bytes: bytes, chunks: members };
    let made = ["ext4", "xfs"].into_iter().filter_map(|name| mkfs(name, Some(stripe), "/dev/mdN"));
    let keep = if bytes < KIB { Vec::new() } else { [array].into_iter().chain(made.map(keep_mkfs)).collect() };
    Alternative { value: value.into(), keep, option: Some(format!("--chunk {value}")), ..Alternative::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::ArrayFacts;

    #[test]
    fn a_file_system_is_told_of_the_rows_below_it() {
        let mut md = Layer::new(LayerKind::Volume, "md0");
        md.facts.array = Some(ArrayFacts { data_members: Some(3), chunk_bytes: Some(65_536), missing: 0 });
        let lines = |file_system: &str| {
            let layers = [Layer::new(LayerKind::FileSystem, file_system), md.clone()];
            aligned_partition(&layers).into_iter().map(|keep| keep.line).collect::<Vec<_>>()
        };
        assert_eq!(lines("ext4 on /srv")[1], "mkfs.ext4 -b 4096 -E stride=16,stripe_width=48 PARTITION");
        assert_eq!(lines("xfs on /srv")[1], "mkfs.xfs -d su=64k,sw=3 PARTITION");
        assert_eq!(lines("vfat on /srv").len(), 1, "it takes no such option");
        let plain = aligned_partition(&[Layer::new(LayerKind::FileSystem, "vfat on /srv")]);
        assert_eq!(plain[1].line, "mkfs.vfat PARTITION");
        assert_eq!(aligned_partition(&[]).len(), 1, "a device has no file system");
    }
}
