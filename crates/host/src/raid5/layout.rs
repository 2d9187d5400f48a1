//! Left-symmetric: parity rotates backwards and the data follow it, so sequential reads visit all
//! members in turn.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) members: u32,
    pub(crate) chunk: u64,
}

/// Part of a row in which a request covers the same bytes of adjacent chunks: its parity is one
/// piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Band {
    pub(crate) row: u64,
    pub(crate) low: u64,
    pub(crate) width: u32,
    pub(crate) columns: Range<u32>,
    /// The first chunk's offset in the request's data; the others follow, a chunk apart.
    pub(crate) at: u64,
}

impl Band {
    pub(crate) fn data_of(&self, column: u32, chunk: u64) -> u64 {
        self.at + u64::from(column - self.columns.start) * chunk
    }

    pub(crate) fn on_member(&self, chunk: u64) -> u64 {
        self.row * chunk + self.low
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) member: u32,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) at: u64,
}

impl Layout {
    pub(crate) fn data(self) -> u32 {
        self.members - 1
    }

    pub(crate) fn row_bytes(self) -> u64 {
        self.chunk * u64::from(self.data())
    }

    pub(crate) fn parity_member(self, row: u64) -> u32 {
        let members = u64::from(self.members);
        (members - 1 - row % members) as u32
    }

    pub(crate) fn member(self, row: u64, column: u32) -> u32 {
        (self.parity_member(row) + 1 + column) % self.members
    }

    /// Parity comes after all data.
    pub(crate) fn column(self, row: u64, member: u32) -> u32 {
        (member + self.members - self.parity_member(row) - 1) % self.members
    }

    pub(crate) fn outside(self, band: &Band) -> impl Iterator<Item = u32> + use<> {
        let (row, columns) = (band.row, band.columns.clone());
        (0..self.members)
            .filter(move |column| !columns.contains(column))
            .map(move |column| self.member(row, column))
    }

    pub(crate) fn bands_with(
        self,
        member: u32,
        offset: u64,
        len: u32,
    ) -> impl Iterator<Item = (Band, u32)> {
        self.bands(offset, len).filter_map(move |band| {
            let column = self.column(band.row, member);
            band.columns.contains(&column).then_some((band, column))
        })
    }

    pub(crate) fn rows(self, offset: u64, len: u32) -> Range<u64> {
        let row = self.row_bytes();
        offset / row..(offset + u64::from(len)).div_ceil(row)
    }

    pub(crate) fn pieces(self, offset: u64, len: u32) -> impl Iterator<Item = Piece> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let left = u64::from(len) - at;
            if left == 0 {
                return None;
            }
            let (chunk, inside) = ((offset + at) / self.chunk, (offset + at) % self.chunk);
            let data = u64::from(self.data());
            let (row, column) = (chunk / data, (chunk % data) as u32);
            let len = (self.chunk - inside).min(left);
            let piece = Piece {
                member: self.member(row, column),
                offset: row * self.chunk + inside,
                len: len as u32,
                at,
            };
            at += len;
            Some(piece)
        })
    }

    pub(crate) fn bands(self, offset: u64, len: u32) -> impl Iterator<Item = Band> {
        let end = offset + u64::from(len);
        let row_bytes = self.row_bytes();
        self.rows(offset, len).flat_map(move |row| {
            let start = row * row_bytes;
            // The covered part of this row.
            let from = offset.max(start) - start;
            let to = end.min(start + row_bytes) - start;
            let (first, first_at) = ((from / self.chunk) as u32, from % self.chunk);
            let (last, last_at) = ((to / self.chunk) as u32, to % self.chunk);
            let cuts = [0, first_at.min(last_at), first_at.max(last_at), self.chunk];
            (0..3).filter_map(move |cut| {
                let (low, high) = (cuts[cut], cuts[cut + 1]);
                let columns = first + u32::from(low < first_at)..last + u32::from(low < last_at);
                (low < high && !columns.is_empty()).then(|| Band {
                    row,
                    low,
                    width: (high - low) as u32,
                    at: start + u64::from(columns.start) * self.chunk + low - offset,
                    columns,
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn the_layout_is_left_symmetric() {
        let layout = Layout { members: 4, chunk: 64 };
        let rows: Vec<(u32, Vec<u32>)> = (0..5)
            .map(|row| {
                (
                    layout.parity_member(row),
                    (0..3).map(|column| layout.member(row, column)).collect(),
                )
            })
            .collect();
        let expected =
            [(3, [0, 1, 2]), (2, [3, 0, 1]), (1, [2, 3, 0]), (0, [1, 2, 3]), (3, [0, 1, 2])];
        assert_eq!(rows, expected.map(|(parity, data)| (parity, data.to_vec())));
    }

    proptest! {
        #[test]
        fn every_byte_has_its_own_location(members in 3u32..7, chunk in 1u64..20, rows in 1u64..9) {
            let layout = Layout { members, chunk };
            let mut seen = HashSet::new();
            for offset in 0..layout.row_bytes() * rows {
                let piece = layout.pieces(offset, 1).next().unwrap();
                prop_assert!(piece.member < members && piece.offset < chunk * rows);
                prop_assert!(piece.member != layout.parity_member(piece.offset / chunk), "no data where parity is");
                prop_assert!(seen.insert((piece.member, piece.offset)));
            }
        }

        #[test]
        fn a_read_without_a_member_reads_no_byte_twice(members in 3u32..7, failed in 0u32..7, chunk in 1u64..20, offset in 0u64..300, len in 1u32..300) {
            let (layout, failed) = (Layout { members, chunk }, failed % members);
            let mut read = HashSet::new();
            let pieces = layout.pieces(offset, len).filter(|piece| piece.member != failed);
            let data = pieces.map(|piece| (piece.member, piece.offset, piece.len));
            let rest = layout.bands_with(failed, offset, len).flat_map(|(band, _)| {
                let (on_member, width) = (band.on_member(chunk), band.width);
                layout.outside(&band).map(move |member| (member, on_member, width))
            });
            for (member, at, len) in data.chain(rest) {
                prop_assert!(member != failed);
                for byte in at..at + u64::from(len) {
                    prop_assert!(read.insert((member, byte)));
                }
            }
        }

        #[test]
        fn bands_cover_a_request(members in 3u32..7, chunk in 1u64..20, offset in 0u64..300, len in 1u32..300) {
            let layout = Layout { members, chunk };
            let mut by_piece = Vec::new();
            for piece in layout.pieces(offset, len) {
                by_piece.extend((0..u64::from(piece.len)).map(|i| (piece.at + i, piece.member, piece.offset + i)));
            }
            let mut by_band = Vec::new();
            for band in layout.bands(offset, len) {
                prop_assert!(band.columns.end <= layout.data() && band.low + u64::from(band.width) <= chunk);
                for column in band.columns.clone() {
                    let at = band.at + u64::from(column - band.columns.start) * chunk;
                    let on_member = band.row * chunk + band.low;
                    let member = layout.member(band.row, column);
                    by_band.extend((0..u64::from(band.width)).map(|i| (at + i, member, on_member + i)));
                }
            }
            by_band.sort_unstable();
            prop_assert_eq!(by_band, by_piece);
        }
    }
}
