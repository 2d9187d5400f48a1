//! A program waits for lines it reads; stores read a line first (unless a string instruction writes
//! it whole) and write it back later. The slower of processor and bus sets the rate.

use machine::MemoryKind;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    pub bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_advertised_bytes_per_s: Option<f64>,
    /// Measured on a machine like this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<MemoryRate>,
    /// If the rates are derived from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<MemoryLines>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryRate {
    pub kind: MemoryKind,
    pub bytes_per_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryLines {
    pub line_bytes: u64,
    /// From a miss to the line; the bus is busy throughout.
    pub read_ns: f64,
    /// Write-back of a dirty line; only the bus is busy.
    pub write_ns: f64,
    /// An 8-byte load that hits.
    pub load_ns: f64,
    /// An 8-byte store that hits.
    pub store_ns: f64,
}

/// The use of a line.
struct Way {
    kind: MemoryKind,
    read: f64,
    /// Lines read because they are stored into; only the bus waits.
    owned: f64,
    written: f64,
    /// The whole line is loaded, eight bytes at a time.
    loads: bool,
    stores: bool,
}

/// Table 2 of the 1997 study. The file system copies with string instructions to or from a buffer
/// in the CPU cache: the report's temporary files.
const WAYS: [Way; 7] = [
    Way { kind: MemoryKind::Read, read: 1.0, owned: 0.0, written: 0.0, loads: false, stores: true },
    Way {
        kind: MemoryKind::Write,
        read: 0.0,
        owned: 0.0,
        written: 1.0,
        loads: false,
        stores: true,
    },
    Way { kind: MemoryKind::Copy, read: 1.0, owned: 1.0, written: 1.0, loads: true, stores: true },
    Way {
        kind: MemoryKind::UnrolledLoad,
        read: 1.0,
        owned: 0.0,
        written: 0.0,
        loads: true,
        stores: false,
    },
    Way {
        kind: MemoryKind::ReadMiss,
        read: 1.0,
        owned: 0.0,
        written: 0.0,
        loads: false,
        stores: false,
    },
    Way {
        kind: MemoryKind::UnrolledStore,
        read: 0.0,
        owned: 1.0,
        written: 1.0,
        loads: false,
        stores: true,
    },
    Way {
        kind: MemoryKind::WriteMiss,
        read: 0.0,
        owned: 1.0,
        written: 1.0,
        loads: false,
        stores: false,
    },
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
    pub fn rates(&self) -> Vec<MemoryRate> {
        let Some(lines) = self.lines else { return self.rates.clone() };
        WAYS.iter()
            .map(|way| MemoryRate { kind: way.kind, bytes_per_s: lines.bytes_per_s(way) })
            .collect()
    }

    pub fn contradiction(&self) -> Option<&'static str> {
        let copy = self.rates.iter().any(|rate| rate.kind == MemoryKind::Copy);
        match self.lines {
            Some(_) if !self.rates.is_empty() => {
                Some("rates follow from lines; give one of the two")
            }
            Some(lines) if !lines.line_bytes.is_multiple_of(8) => {
                Some("a line is a multiple of 8 bytes")
            }
            None if !copy => Some("give lines, or rates with that of kind \"copy\""),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_limited_by_the_processor_or_the_bus() {
        let lines = MemoryLines {
            line_bytes: 32,
            read_ns: 100.0,
            write_ns: 50.0,
            load_ns: 10.0,
            store_ns: 40.0,
        };
        let memory = Memory {
            bytes: 1 << 20,
            bus_advertised_bytes_per_s: None,
            rates: Vec::new(),
            lines: Some(lines),
        };
        let rates = memory.rates();
        let ns = |kind: MemoryKind| {
            32e9 / rates.iter().find(|rate| rate.kind == kind).unwrap().bytes_per_s
        };
        for (kind, expected) in [
            (MemoryKind::ReadMiss, 100.0),
            (MemoryKind::WriteMiss, 150.0),
            (MemoryKind::UnrolledLoad, 140.0),
            // Stores overlap write-backs: 4 of every 40 ns exceed the bus time.
            (MemoryKind::UnrolledStore, 160.0),
            (MemoryKind::Read, 260.0),
            (MemoryKind::Write, 160.0),
            (MemoryKind::Copy, 300.0),
        ] {
            assert!((ns(kind) - expected).abs() < 1e-6, "{}: {}", kind.name(), ns(kind));
        }
    }
}
