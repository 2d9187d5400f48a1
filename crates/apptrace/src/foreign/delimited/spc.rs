use super::super::text::seconds;
use super::{Row, access, bytes, fields_expected, number};

const BLOCK: u64 = 512;

/// Blocks of 512 bytes, size in bytes, seconds since the start; more fields may follow (Storage
/// Performance Council, "SPC trace file format specification", revision 1.0.1).
pub(super) fn row<'a>(fields: &[&'a str]) -> Result<Row<'a>, String> {
    let &[asu, block, size, op, time, ..] = fields else {
        return Err(fields_expected(fields.len(), "ASU,LBA,size,opcode,timestamp"));
    };
    let block = number("LBA", block)?;
    number("ASU", asu)?;
    Ok(Row {
        at_ns: seconds("timestamp", time)?,
        duration_ns: None,
        access: access(op)?,
        device: ["asu", asu],
        offset: block.checked_mul(BLOCK).ok_or_else(|| format!("LBA {block} is beyond 64 bits"))?,
        bytes: bytes("size", size)?,
    })
}
