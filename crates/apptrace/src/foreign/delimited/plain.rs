use super::{Row, access, bytes, fields_expected, number};

pub(super) fn row<'a>(fields: &[&'a str]) -> Result<Row<'a>, String> {
    let &[time, op, offset, length] = fields else {
        return Err(fields_expected(fields.len(), "time_ns,op,offset,bytes"));
    };
    Ok(Row {
        at_ns: number("time_ns", time)?,
        duration_ns: None,
        access: access(op)?,
        device: ["device", ""],
        offset: number("offset", offset)?,
        bytes: bytes("bytes", length)?,
    })
}
