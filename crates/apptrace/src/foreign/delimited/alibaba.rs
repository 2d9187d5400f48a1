use super::{Row, access, bytes, fields_expected, number};

/// Bytes and microseconds (README of github.com/alibaba/block-traces).
pub(super) fn row<'a>(fields: &[&'a str]) -> Result<Row<'a>, String> {
    let &[device, op, offset, length, time] = fields else {
        return Err(fields_expected(fields.len(), "device_id,opcode,offset,length,timestamp"));
    };
    let time = number("timestamp", time)?;
    Ok(Row {
        at_ns: time
            .checked_mul(1000)
            .ok_or_else(|| format!("timestamp {time} is beyond 64 bits"))?,
        duration_ns: None,
        access: access(op)?,
        device: ["device", device],
        offset: number("offset", offset)?,
        bytes: bytes("length", length)?,
    })
}
