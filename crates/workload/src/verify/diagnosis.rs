//! Finds the kind of fault.

use super::unit::{Label, UNIT};
use super::{Expected, Fault, FaultKind, Found};

/// A unit with more wrong bits is unrelated data, which differ in about half of the 4096.
const FLIPPED_BITS: u32 = 512;
/// Fewer matching bytes on a side look like flipped bits.
const SEAM_BYTES: usize = 8;
/// Unrelated data differ in half of the bits, damage in fewer.
const TORN_SHARE: f64 = 0.25;
/// Older generations to try for a damaged unit.
const OLDER: u32 = 4;
const CANDIDATES: usize = 24;

enum Verdict {
    Right,
    Unverifiable,
    Wrong(FaultKind, Found),
}

/// `fill`: the seed of the file's first data. Returns the bytes judged.
pub fn check_block(
    (seed, fill): (u64, Option<u64>),
    offset: u64,
    data: &[u8],
    expected: &Expected,
    faults: &mut Vec<Fault>,
) -> u64 {
    let first_fault = faults.len();
    let mut verified = 0;
    let mut whole_of_one = true;
    let mut seen: Option<u32> = None;
    let mut any_right = false;
    for (i, unit) in data.chunks_exact(UNIT).enumerate() {
        let at = offset + (i * UNIT) as u64;
        let read = Label::read(unit);
        if let Some((label, true)) = read
            && (label.seed, label.offset) == (seed, at)
        {
            whole_of_one &= *seen.get_or_insert(label.generation) == label.generation;
        }
        let verdict = match read {
            Some((label, true)) => judge_sound(seed, at, label, expected),
            _ => judge_damaged((seed, fill), at, unit, read.map(|(label, _)| label), expected),
        };
        match verdict {
            Verdict::Unverifiable => {}
            Verdict::Right => {
                verified += UNIT as u64;
                any_right = true;
            }
            Verdict::Wrong(kind, found) => {
                whole_of_one &= kind != FaultKind::Torn;
                verified += UNIT as u64;
                add(
                    faults,
                    first_fault,
                    Fault {
                        kind,
                        offset: at,
                        bytes: UNIT as u64,
                        expected: expected.clone(),
                        found,
                    },
                );
            }
        }
    }
    // Old data next to another generation, or next to a seam, means that the write arrived in part.
    // The same holds for data from before the first write next to that write.
    let first_in_part =
        any_right && faults[first_fault..].iter().any(|fault| fault.kind == FaultKind::Lost);
    if !whole_of_one || first_in_part {
        for fault in faults[first_fault..].iter_mut().filter(|fault| fault.kind == FaultKind::Lost)
        {
            fault.kind = FaultKind::Torn;
        }
    }
    verified
}

fn judge_sound(seed: u64, at: u64, label: Label, expected: &Expected) -> Verdict {
    if label.seed != seed {
        return match expected.oldest() {
            0 => Verdict::Unverifiable,
            _ => Verdict::Wrong(FaultKind::Stale, Found::Seed(label.seed)),
        };
    }
    let generation = label.generation;
    if label.offset != at {
        // Wrong even if nothing was written: the block came from elsewhere in this run.
        return Verdict::Wrong(
            FaultKind::Misdirected,
            Found::Offset { offset: label.offset, generation },
        );
    }
    if expected.admits(generation) {
        Verdict::Right
    } else if generation < expected.newest {
        Verdict::Wrong(FaultKind::Lost, Found::Generation(generation))
    } else {
        Verdict::Wrong(FaultKind::Foreign, Found::Generation(generation))
    }
}

fn judge_damaged(
    (seed, fill): (u64, Option<u64>),
    at: u64,
    unit: &[u8],
    label: Option<Label>,
    expected: &Expected,
) -> Verdict {
    // Data from before the run, or left by a failed write, are unknown: any bytes may be right.
    if expected.oldest() == 0 || expected.unknown {
        return Verdict::Unverifiable;
    }
    if expected.mixed() && is_mixture(seed, at, unit, expected) {
        return Verdict::Right;
    }
    let candidates = candidates(seed, at, label, expected);
    if let Some((before, after, seam)) = seam(unit, &candidates) {
        return Verdict::Wrong(FaultKind::Torn, Found::Seam { before, after, at: seam as u32 });
    }
    if let Some((generation, at, first)) =
        candidates.iter().find_map(|(generation, image)| part(unit, image, *generation))
    {
        return Verdict::Wrong(FaultKind::Torn, Found::Part { generation, at: at as u32, first });
    }
    let nearest = candidates
        .iter()
        .map(|(generation, image)| (differing_bits(unit, image), *generation, image))
        .min_by_key(|near| near.0);
    if let Some((bits, generation, image)) = nearest.filter(|near| near.0 <= FLIPPED_BITS) {
        let first_bit = first_differing_bit(unit, image);
        return Verdict::Wrong(FaultKind::Flipped, Found::Bits { first_bit, bits, generation });
    }
    let zeros = unit.iter().all(|&byte| byte == 0);
    let found = if zeros { Found::Zeros } else { Found::Unknown };
    // Before its first write a block holds the initial data of its file: known data, random data or
    // zeros.
    let as_before = match fill {
        Some(fill) if !zeros => is_fill(fill, at, unit),
        _ => expected.newest == 1 && (zeros || is_random(unit)),
    };
    Verdict::Wrong(if as_before { FaultKind::Lost } else { FaultKind::Foreign }, found)
}

fn is_mixture(seed: u64, at: u64, unit: &[u8], expected: &Expected) -> bool {
    let mut wrong: Vec<usize> = (0..unit.len()).collect();
    for generation in expected.generations() {
        let image = image(Label { seed, offset: at, generation });
        wrong.retain(|&byte| unit[byte] != image[byte]);
        if wrong.is_empty() {
            return true;
        }
    }
    false
}

fn is_fill(seed: u64, at: u64, unit: &[u8]) -> bool {
    let mut filled = [0; UNIT];
    machine::filled(seed, at, &mut filled);
    unit == filled
}

fn is_random(unit: &[u8]) -> bool {
    let ones: u32 = unit.iter().map(|byte| byte.count_ones()).sum();
    let mut seen = [false; 256];
    unit.iter().for_each(|&byte| seen[usize::from(byte)] = true);
    (1792..=2304).contains(&ones) && seen.iter().filter(|seen| **seen).count() > 180
}

/// One end of the unit belongs to a generation. Returns the generation, the boundary, and whether
/// its part is first.
fn part(unit: &[u8], image: &[u8; UNIT], generation: u32) -> Option<(u32, usize, bool)> {
    let head = unit.iter().zip(image).take_while(|(a, b)| a == b).count();
    let tail = unit.iter().rev().zip(image.iter().rev()).take_while(|(a, b)| a == b).count();
    let (at, first, other) =
        if head >= tail { (head, true, head..UNIT) } else { (UNIT - tail, false, 0..UNIT - tail) };
    let bits = differing_bits(&unit[other.clone()], &image[other.clone()]);
    let unrelated = f64::from(bits) >= TORN_SHARE * 8.0 * other.len() as f64;
    (head.max(tail) >= SEAM_BYTES && other.len() >= SEAM_BYTES && unrelated)
        .then_some((generation, at, first))
}

/// The expected generations, some older ones, and the header's.
fn candidates(
    seed: u64,
    at: u64,
    label: Option<Label>,
    expected: &Expected,
) -> Vec<(u32, [u8; UNIT])> {
    let oldest = expected.oldest().saturating_sub(OLDER).max(1);
    let labels = (oldest..=expected.newest).rev().take(CANDIDATES).map(|generation| Label {
        seed,
        offset: at,
        generation,
    });
    let named = label.filter(|label| label.seed == seed);
    labels.chain(named).map(|label| (label.generation, image(label))).collect()
}

fn image(label: Label) -> [u8; UNIT] {
    let mut image = [0; UNIT];
    label.write(&mut image);
    image
}

fn seam(unit: &[u8], candidates: &[(u32, [u8; UNIT])]) -> Option<(u32, u32, usize)> {
    let heads = candidates
        .iter()
        .map(|(g, image)| (*g, unit.iter().zip(image).take_while(|(a, b)| a == b).count()));
    let tails: Vec<(u32, usize)> = candidates
        .iter()
        .map(|(g, image)| {
            (*g, unit.iter().rev().zip(image.iter().rev()).take_while(|(a, b)| a == b).count())
        })
        .collect();
    for (before, head) in heads.filter(|(_, head)| *head >= SEAM_BYTES) {
        for &(after, tail) in
            tails.iter().filter(|(after, tail)| *after != before && *tail >= SEAM_BYTES)
        {
            if head + tail >= UNIT {
                return Some((before, after, head));
            }
        }
    }
    None
}

fn differing_bits(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

fn first_differing_bit(a: &[u8], b: &[u8]) -> u32 {
    a.iter()
        .zip(b)
        .position(|(a, b)| a != b)
        .map_or(0, |i| i as u32 * 8 + (a[i] ^ b[i]).trailing_zeros())
}

fn add(faults: &mut Vec<Fault>, first_of_block: usize, fault: Fault) {
    let joined = faults.len() > first_of_block
        && faults.last_mut().is_some_and(|last| {
            let goes_on = match (last.found, fault.found) {
                (
                    Found::Offset { offset: a, generation: g },
                    Found::Offset { offset: b, generation: h },
                ) => g == h && b.wrapping_sub(a) == last.bytes,
                (Found::Bits { .. }, _) | (Found::Seam { .. }, _) => false,
                (a, b) => a == b,
            };
            let same =
                goes_on && last.kind == fault.kind && last.offset + last.bytes == fault.offset;
            last.bytes += if same { fault.bytes } else { 0 };
            same
        });
    if !joined {
        faults.push(fault);
    }
}
