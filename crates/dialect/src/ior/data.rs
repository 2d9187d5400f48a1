//! Random data with a stamp of its place in every 512 bytes, by which reads are checked.

use machine::{Error, Result, fill_random};

/// The random bytes repeat after it; the stamps do not.
const PERIOD: usize = 1 << 20;

const STAMP_EVERY: u64 = 512;

/// For direct I/O.
const ALIGNMENT: usize = 4096;

pub(super) struct Data {
    signature: u64,
    transfer: usize,
    /// One period and one transfer.
    random: Aligned,
    pub(super) got: Aligned,
}

pub(super) struct Aligned {
    memory: Vec<u8>,
    first: usize,
    len: usize,
}

impl Aligned {
    fn new(len: usize) -> Result<Aligned> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(len + ALIGNMENT).map_err(|_| {
            let why = "not enough memory for the data of a transfer";
            Error::refused(format!("a transfer of {len} bytes"), why, "give a smaller one with -t")
        })?;
        memory.resize(len + ALIGNMENT, 0);
        let first = memory.as_ptr().align_offset(ALIGNMENT);
        Ok(Aligned { memory, first, len })
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.first..self.first + self.len]
    }
}

fn stamp(signature: u64, task: u64, place: u64) -> [u8; 8] {
    let mut word = [0; 8];
    fill_random(signature ^ task.rotate_left(44) ^ place, &mut word);
    word
}

impl Data {
    pub(super) fn new(signature: u64, transfer: usize) -> Result<Data> {
        let mut random = Aligned::new(PERIOD + transfer)?;
        let bytes = random.bytes();
        fill_random(signature, &mut bytes[..PERIOD]);
        let mut done = PERIOD;
        while done < bytes.len() {
            let more = (bytes.len() - done).min(PERIOD);
            bytes.copy_within(..more, done);
            done += more;
        }
        Ok(Data { signature, transfer, random, got: Aligned::new(transfer)? })
    }

    pub(super) fn at(&mut self, offset: u64, task: u64) -> &[u8] {
        let first = (offset % PERIOD as u64) as usize;
        let data = &mut self.random.bytes()[first..first + self.transfer];
        let end = offset + data.len() as u64;
        let mut place = offset / STAMP_EVERY * STAMP_EVERY;
        while place < end {
            let word = stamp(self.signature, task, place);
            // The transfer may begin or end within it.
            let (from, to) = (place.max(offset), (place + 8).min(end));
            if from < to {
                let part = &word[(from - place) as usize..(to - place) as usize];
                data[(from - offset) as usize..(to - offset) as usize].copy_from_slice(part);
            }
            place += STAMP_EVERY;
        }
        data
    }

    pub(super) fn is_right(&mut self, offset: u64, task: u64) -> bool {
        self.at(offset, task);
        let first = (offset % PERIOD as u64) as usize;
        self.random.bytes()[first..first + self.transfer] == *self.got.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_transfers_write_the_same_bytes(
            offset in 0u64..3_000_000, transfer in 1usize..5000, other in 1usize..5000, task in 0u64..9,
        ) {
            let mut one = Data::new(7, transfer).unwrap();
            let whole = one.at(offset, task).to_vec();
            let mut two = Data::new(7, other).unwrap();
            let mut place = 0;
            while place < transfer {
                let piece = two.at(offset + place as u64, task).to_vec();
                let here = piece.len().min(transfer - place);
                prop_assert_eq!(&piece[..here], &whole[place..place + here]);
                place += here;
            }
            // A stale stamp of another transfer does not stay.
            one.at(offset + 1, task);
            prop_assert_eq!(one.at(offset, task), &whole[..]);
        }

        #[test]
        fn another_place_task_or_byte_is_seen(place in 0u64..1 << 40, byte in 0usize..1024, task in 0u64..9) {
            let mut data = Data::new(3, 1024).unwrap();
            let place = place * 8;
            let right = data.at(place, task).to_vec();
            data.got.bytes().copy_from_slice(&right);
            prop_assert!(data.is_right(place, task));
            prop_assert!(!data.is_right(place + 512, task));
            prop_assert!(!data.is_right(place, task + 1));
            data.got.bytes()[byte] ^= 1;
            prop_assert!(!data.is_right(place, task));
        }
    }

    #[test]
    fn buffers_suit_direct_io() {
        let mut data = Data::new(1, 8192).unwrap();
        assert_eq!(data.at(3 * 4096, 0).as_ptr() as usize % 4096, 0);
        assert_eq!(data.got.bytes().as_ptr() as usize % 4096, 0);
    }
}
