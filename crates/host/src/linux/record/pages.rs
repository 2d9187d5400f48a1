//! Pages of `trace_pipe_raw` (include/linux/ring_buffer.h, kernel/trace/ring_buffer.c).

use machine::Nanos;

pub(super) const HEADER_BYTES: usize = 16;

/// Events before this page were lost; their count follows the data.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
const LENGTH: u64 = (1 << 20) - 1;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Returns the events lost before the page.
pub(super) fn read(page: &[u8], mut each: impl FnMut(Nanos, &[u8])) -> u64 {
    let Some(mut time) = u64_at(page, 0) else { return 0 };
    let Some(commit) = u64_at(page, 8) else { return 0 };
    let end = (HEADER_BYTES + (commit & LENGTH) as usize).min(page.len());
    let missed = match (commit & MISSED, commit & MISSED_STORED) {
        (0, _) => 0,
        (_, 0) => 1,
        _ => u64_at(page, end).unwrap_or(1).max(1),
    };
    let data = &page[..end];
    let mut at = HEADER_BYTES;
    while let Some(head) = u32_at(data, at) {
        let (kind, delta) = (head & 31, u64::from(head >> 5));
        let next = u32_at(data, at + 4);
        match (kind, next) {
            // The rest of the page is empty.
            (PADDING, _) if delta == 0 => break,
            (PADDING, Some(bytes)) => {
                time = time.wrapping_add(delta);
                at += 4 + bytes as usize;
            }
            (TIME_EXTEND, Some(high)) => {
                time = time.wrapping_add((u64::from(high) << 27) + delta);
                at += 8;
            }
            (TIME_STAMP, Some(high)) => {
                // 59 bits are stored; the upper ones are those of the time so far.
                let stamp = (u64::from(high) << 27) + delta;
                time = (time & !((1 << 59) - 1)) | stamp;
                at += 8;
            }
            (0, Some(bytes)) => {
                time = time.wrapping_add(delta);
                let Some(event) = data.get(at + 8..at + 4 + bytes as usize) else { break };
                each(time, event);
                at += 4 + bytes as usize;
            }
            (1..PADDING, _) => {
                time = time.wrapping_add(delta);
                let bytes = kind as usize * 4;
                let Some(event) = data.get(at + 4..at + 4 + bytes) else { break };
                each(time, event);
                at += 4 + bytes;
            }
            _ => break,
        }
    }
    missed
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(time: u64, data: &[u32], flags: u64, after: u64) -> Vec<u8> {
        let mut page = time.to_le_bytes().to_vec();
        page.extend(((data.len() as u64 * 4) | flags).to_le_bytes());
        page.extend(data.iter().flat_map(|word| word.to_le_bytes()));
        page.extend(after.to_le_bytes());
        page.resize(4096, 0);
        page
    }

    fn events(page: &[u8]) -> (Vec<(Nanos, Vec<u8>)>, u64) {
        let mut events = Vec::new();
        let missed = read(page, |time, event| events.push((time, event.to_vec())));
        (events, missed)
    }

    #[test]
    fn every_kind_of_entry_is_understood() {
        let data = [
            2 | 5 << 5,
            0x11,
            0x22, // two words, 5 ns later
            TIME_EXTEND | 7 << 5,
            1, // 2^27 + 7 ns
            3 << 5,
            12,
            0x33,
            0x44, // a long event of two words, 3 ns later
            PADDING | 1 << 5,
            8,
            0, // a discarded event
            TIME_STAMP | 9 << 5,
            2, // at 2^28 + 9
            1,
            0x55,
            PADDING,
            0,
            0,
        ];
        let (events, missed) = events(&page(1000, &data, MISSED | MISSED_STORED, 42));
        let times: Vec<Nanos> = events.iter().map(|event| event.0).collect();
        assert_eq!(times, [1005, 1015 + (1 << 27), (2 << 27) + 9]);
        assert_eq!(events[0].1, [0x11, 0, 0, 0, 0x22, 0, 0, 0]);
        assert_eq!(events[1].1, [0x33, 0, 0, 0, 0x44, 0, 0, 0]);
        assert_eq!(events[2].1, [0x55, 0, 0, 0]);
        assert_eq!(missed, 42);
        assert_eq!(self::events(&page(1, &[], MISSED, 0)), (vec![], 1));
    }

    proptest! {
        #[test]
        fn no_page_does_harm(bytes in proptest::collection::vec(any::<u8>(), 0..600), length in any::<u16>()) {
            let mut bytes = bytes;
            if bytes.len() >= HEADER_BYTES {
                bytes[8..16].copy_from_slice(&u64::from(length).to_le_bytes());
            }
            let (events, _) = events(&bytes);
            prop_assert!(events.len() <= bytes.len());
        }
    }
}
