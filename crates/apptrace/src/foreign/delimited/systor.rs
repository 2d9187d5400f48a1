use super::super::text::seconds;
use super::{Row, access, bytes, fields_expected, number};

/// Seconds and bytes; the response time may be empty (SNIA IOTTA trace 4964, README).
pub(super) fn row<'a>(fields: &[&'a str]) -> Result<Row<'a>, String> {
    let &[time, response, op, unit, offset, size] = fields else {
        let form = "Timestamp,Response,IOType,LUN,Offset,Size";
        return Err(fields_expected(fields.len(), form));
    };
    let duration = (!response.is_empty()).then(|| seconds("Response", response)).transpose()?;
    Ok(Row {
        at_ns: seconds("Timestamp", time)?,
        duration_ns: duration,
        access: access(op)?,
        device: ["lun", unit],
        offset: number("Offset", offset)?,
        bytes: bytes("Size", size)?,
    })
}
