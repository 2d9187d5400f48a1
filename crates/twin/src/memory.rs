//! Main memory behind a processor's caches: what the ways of moving it cost, line by line.
//!
//! A program that goes through memory waits for each line that it reads and then loads it; a line that it stores into is read
//! first, unless a string instruction writes it whole, and written back later, while the program goes on. So a way is as slow as the
//! slower of two: the processor, which waits for what it reads, or the memory bus, over which all lines go.

use serde::{Deserialize, Serialize};

/// Main memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Its size.
    pub bytes: u64,
    /// Ways of moving it and their rates, where they were measured on a machine like this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<MemoryRate>,
    /// What a cache line costs, where the rates follow from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<MemoryLines>,
}

/// One way of moving memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryRate {
    /// `read`, `write`, `copy`, or a finer name.
    pub kind: String,
    /// Its rate.
    pub bytes_per_s: f64,
}

/// A processor's cache lines.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryLines {
    /// Bytes of a line.
    pub line_bytes: u64,
    /// From a miss to the line: the bus is taken as long.
    pub read_ns: f64,
    /// A changed line on its way back: only the bus is taken.
    pub write_ns: f64,
    /// A load of eight bytes of a line that is there.
    pub load_ns: f64,
    /// A store of eight bytes to a line that is there.
    pub store_ns: f64,
}

/// A way of moving memory, by what it does with a line.
struct Way {
    kind: &'static str,
    /// Lines that the processor waits for.
    read: f64,
    /// Lines that are read because they are stored into, for which only the bus waits.
    owned: f64,
    /// Lines that go back.
    written: f64,
    /// The whole line is loaded, eight bytes at a time.
    loads: bool,
    /// The whole line is stored, eight bytes at a time.
    stores: bool,
}

/// The ways of table 2 of the 1997 study. The file system copies with string instructions to or from a buffer that the processor's cache
/// holds: the report's temporary files.
const WAYS: [Way; 7] = [
    Way { kind: "read", read: 1.0, owned: 0.0, written: 0.0, loads: false, stores: true },
    Way { kind: "write", read: 0.0, owned: 0.0, written: 1.0, loads: false, stores: true },
    Way { kind: "copy", read: 1.0, owned: 1.0, written: 1.0, loads: true, stores: true },
    Way {
        kind: "unrolled double load to single destination",
        read: 1.0,
        owned: 0.0,
        written: 0.0,
        loads: true,
        stores: false,
    },
    Way { kind: "unrolled cache line read miss", read: 1.0, owned: 0.0, written: 0.0, loads: false, stores: false },
    Way {
        kind: "unrolled double store to single destination",
        read: 0.0,
        owned: 1.0,
        written: 1.0,
        loads: false,
        stores: true,
    },
    Way { kind: "unrolled cache line write miss", read: 0.0, owned: 1.0, written: 1.0, loads: false, stores: false },
];

impl MemoryLines {
    fn bytes_per_s(&self, way: &Way) -> f64 {
        let eights = self.line_bytes as f64 / 8.0;
        let [loads, stores] = [way.loads, way.stores].map(|done| if done { eights } else { 0.0 });
        let processor = way.read * self.read_ns + loads * self.load_ns + stores * self.store_ns;
        let bus = (way.read + way.owned) * self.read_ns + way.written * self.write_ns;
        self.line_bytes as f64 / processor.max(bus) * 1e9
    }
}

impl Memory {
    /// Ways of moving it and their rates.
    pub fn rates(&self) -> Vec<MemoryRate> {
        let Some(lines) = self.lines else { return self.rates.clone() };
        WAYS.iter().map(|way| MemoryRate { kind: way.kind.to_owned(), bytes_per_s: lines.bytes_per_s(way) }).collect()
    }

    /// What in it contradicts itself.
    pub fn contradiction(&self) -> Option<&'static str> {
        let copy = self.rates.iter().any(|rate| rate.kind == "copy");
        match self.lines {
            Some(_) if !self.rates.is_empty() => Some("rates follow from lines; give one of the two"),
            Some(lines) if !lines.line_bytes.is_multiple_of(8) => Some("a line is a multiple of 8 bytes"),
            None if !copy => Some("give lines, or rates with that of kind \"copy\""),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_as_slow_as_the_processor_or_the_bus() {
        let lines = MemoryLines { line_bytes: 32, read_ns: 100.0, write_ns: 50.0, load_ns: 10.0, store_ns: 40.0 };
        let memory = Memory { bytes: 1 << 20, rates: Vec::new(), lines: Some(lines) };
        let rates = memory.rates();
        let ns = |kind: &str| 32e9 / rates.iter().find(|rate| rate.kind == kind).unwrap().bytes_per_s;
        for (kind, expected) in [
            ("unrolled cache line read miss", 100.0),
            ("unrolled cache line write miss", 150.0),
            ("unrolled double load to single destination", 140.0),
            // Stores go on while lines go back: 4 of 40 ns take longer than the bus.
            ("unrolled double store to single destination", 160.0),
            ("read", 260.0),
            ("write", 160.0),
            ("copy", 300.0),
        ] {
            assert!((ns(kind) - expected).abs() < 1e-6, "{kind}: {}", ns(kind));
        }
    }
}
