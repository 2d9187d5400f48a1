use super::{Row, access, bytes, fields_expected, number};

/// Windows file times, in units of 100 ns (SNIA IOTTA trace 388, README).
pub(super) fn row<'a>(fields: &[&'a str]) -> Result<Row<'a>, String> {
    let &[time, host, disk, op, offset, size, response] = fields else {
        let form = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
        return Err(fields_expected(fields.len(), form));
    };
    let units = |name: &str, text: &str| {
        let units = number(name, text)?;
        units.checked_mul(100).ok_or_else(|| format!("{name} {units} is beyond 64 bits"))
    };
    // The absolute time in nanoseconds exceeds 64 bits: count from 1970.
    const UNIX_EPOCH: u64 = 116_444_736_000_000_000;
    let time = number("Timestamp", time)?;
    let at_ns = time.checked_sub(UNIX_EPOCH).unwrap_or(time).checked_mul(100);
    Ok(Row {
        at_ns: at_ns.ok_or_else(|| format!("Timestamp {time} is beyond 64 bits"))?,
        duration_ns: Some(units("ResponseTime", response)?),
        access: access(op)?,
        device: [host, disk],
        offset: number("Offset", offset)?,
        bytes: bytes("Size", size)?,
    })
}
