use super::{Row, bytes, fields_expected, number};
use crate::Access;

/// fio's "Trace file format v1" (its documentation). Without times, requests are 1 ns apart to keep
/// their order.
pub(super) fn row<'a>(fields: &[&'a str], index: u64) -> Result<Row<'a>, String> {
    let &[rw, offset, length] = fields else {
        return Err(fields_expected(fields.len(), "rw,offset,length"));
    };
    let access = match rw {
        "0" => Access::Read,
        "1" => Access::Write,
        other => return Err(format!("rw {}; write 0 or 1", super::quoted(other))),
    };
    Ok(Row {
        at_ns: index,
        duration_ns: None,
        access,
        device: ["device", ""],
        offset: number("offset", offset)?,
        bytes: bytes("length", length)?,
    })
}
