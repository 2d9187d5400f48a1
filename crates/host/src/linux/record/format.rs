//! The layout of trace events, from the kernel's `format` files.

use super::RecordError;
use crate::linux::trace_instance::TraceInstance;
use std::fs::{self, File};
use std::io::Read;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    pub(super) fn of(self, event: &[u8]) -> u64 {
        let mut value = [0; 8];
        let size = self.size.min(8);
        if let Some(bytes) = event.get(self.offset..self.offset + size) {
            value[..size].copy_from_slice(bytes);
        }
        u64::from_le_bytes(value)
    }

    pub(super) fn offset(self) -> usize {
        self.offset
    }

    pub(super) fn bytes(self, event: &[u8]) -> &[u8] {
        event.get(self.offset..self.offset + self.size).unwrap_or_default()
    }
}

#[derive(Debug)]
pub(super) struct Format {
    pub(super) id: u16,
    fields: Vec<(String, Field)>,
}

impl Format {
    pub(super) fn read(instance: &TraceInstance, event: &str) -> Option<Format> {
        parse(&fs::read_to_string(instance.path(&format!("events/{event}/format"))).ok()?)
    }

    pub(super) fn field(&self, name: &str) -> Result<Field, RecordError> {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map(|&(_, field)| field).ok_or_else(|| RecordError::Format(name.to_owned()))
    }

    pub(super) fn arguments(&self) -> Vec<Field> {
        let own = |name: &str| !name.starts_with("common_") && name != "__syscall_nr";
        self.fields.iter().filter(|(name, _)| own(name)).map(|&(_, field)| field).collect()
    }
}

fn parse(text: &str) -> Option<Format> {
    let id = text.lines().find_map(|line| line.strip_prefix("ID: ")?.parse().ok())?;
    let fields = text.lines().filter_map(field).collect();
    Some(Format { id, fields })
}

/// Parses `field:char rwbs[10]; offset:28; size:10; signed:0;`.
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let name = parts.next()?.rsplit([' ', '*']).next()?.split('[').next()?.to_owned();
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
    Some((name, Field { offset: number("offset:")?, size: number("size:")? }))
}

pub(super) fn page_bytes(instance: &TraceInstance) -> Option<usize> {
    // The kernel gives all of it at the first reading, and nothing at another.
    let mut text = [0; 4096];
    let bytes = File::open(instance.path("../../events/header_page")).ok()?.read(&mut text).ok()?;
    let text = str::from_utf8(&text[..bytes]).ok()?;
    let (_, data) = text.lines().filter_map(field).find(|(name, _)| name == "data")?;
    // The data follow the time and the length.
    (data.offset == super::pages::HEADER_BYTES).then_some(data.offset + data.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_recorded_format_are_found() {
        let text = "name: block_bio_queue\nID: 2097\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
            \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
            \tfield:void *buf;\toffset:16;\tsize:8;\tsigned:0;\n\
            \tfield:char rwbs[10];\toffset:28;\tsize:10;\tsigned:0;\n\nprint fmt: \"%d\"\n";
        let format = parse(text).unwrap();
        assert_eq!(format.id, 2097);
        assert_eq!(format.field("buf").unwrap(), Field { offset: 16, size: 8 });
        assert_eq!(format.field("rwbs").unwrap(), Field { offset: 28, size: 10 });
        assert_eq!(format.arguments().len(), 3);
        assert!(format.field("bytes").is_err());
        let mut event = vec![0; 38];
        event[8..12].copy_from_slice(&0x0070_0001_u32.to_le_bytes());
        assert_eq!(format.field("dev").unwrap().of(&event), 0x0070_0001);
        assert_eq!(format.field("dev").unwrap().of(&event[..10]), 0);
    }
}
