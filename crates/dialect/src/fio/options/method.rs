use super::value::Reason;

pub(crate) const HEADER: usize = 40;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Meta,
    Md5,
    /// CRC-64 (Jones).
    Crc64,
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// CRC-16 (ARC).
    Crc16,
    /// fio's variant: the last padded block, and one byte of each state word.
    Sha256,
    /// fio's variant: the first 128 bytes, overwritten with the remainder after whole blocks.
    /// halfpower's mark protects the rest.
    Sha512,
    Xxhash,
    Sha1,
    /// Not reflected, initial value 0, not inverted.
    Crc32,
    /// CRC-7 (MMC).
    Crc7,
    Sha3With224,
    Sha3With256,
    Sha3With384,
    Sha3With512,
    /// The pattern follows a header.
    PatternHeader,
    Pattern,
    /// Read back but not compared.
    Nothing,
}

/// With fio's number in the header, and checksum bytes.
pub(crate) const METHODS: [(&str, Method, u16, usize); 19] = [
    // The only method without a check.
    ("null", Method::Nothing, 0, 0),
    ("meta", Method::Meta, 1, 0),
    ("md5", Method::Md5, 2, 16),
    ("crc64", Method::Crc64, 3, 8),
    ("crc32", Method::Crc32, 4, 4),
    ("crc32c", Method::Crc32c, 5, 4),
    ("crc32c-intel", Method::Crc32c, 5, 4),
    ("crc16", Method::Crc16, 7, 2),
    ("crc7", Method::Crc7, 8, 1),
    ("sha256", Method::Sha256, 9, 64),
    ("sha512", Method::Sha512, 10, 128),
    ("sha3-224", Method::Sha3With224, 11, 28),
    ("sha3-256", Method::Sha3With256, 12, 32),
    ("sha3-384", Method::Sha3With384, 13, 48),
    ("sha3-512", Method::Sha3With512, 14, 64),
    ("xxhash", Method::Xxhash, 15, 4),
    ("sha1", Method::Sha1, 16, 20),
    // Debian's fio 3.33 does not know the name.
    ("pattern_hdr", Method::PatternHeader, 17, 0),
    ("pattern", Method::Pattern, 0, 0),
];

impl Method {
    pub(crate) fn named(text: &str) -> Result<Option<Method>, Reason> {
        if matches!(text, "0" | "none") {
            return Ok(None);
        }
        METHODS
            .iter()
            .find(|(name, ..)| *name == text)
            .map(|&(_, method, ..)| Some(method))
            .ok_or_else(|| {
                let names: Vec<&str> = METHODS.iter().map(|(name, ..)| *name).collect();
                format!("not supported; write one of {}", names.join(", "))
            })
    }

    pub(crate) fn facts(self) -> (u16, usize) {
        METHODS
            .iter()
            .find(|(_, method, ..)| *method == self)
            .map_or((0, 0), |&(_, _, number, bytes)| (number, bytes))
    }

    pub(crate) fn header_bytes(self) -> usize {
        if matches!(self, Method::Pattern | Method::Nothing) { 0 } else { HEADER + self.facts().1 }
    }

    pub(crate) fn min_bytes(self) -> u64 {
        match self {
            Method::Pattern | Method::Nothing => 1,
            // The data must hold the first block that fio copies.
            Method::Sha512 => (HEADER + 256) as u64,
            _ => (HEADER + self.facts().1 + 8) as u64,
        }
    }
}
