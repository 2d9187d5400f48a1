//! Tables with commas, one request a line.

mod alibaba;
mod fio_log1;
mod msr;
mod plain;
mod spc;
mod systor;

use super::text::{Lines, Names, check_end, number, quoted};
use super::{Reader, Result, Table};
use crate::{Access, Event, Interface, Kind, OpenFile, Request};
use machine::Nanos;
use std::collections::VecDeque;
use std::io::BufRead;

const MAX_LINE_BYTES: usize = 4096;

pub(super) struct Row<'a> {
    pub at_ns: Nanos,
    pub duration_ns: Option<Nanos>,
    pub access: Access,
    /// Two parts of a name.
    pub device: [&'a str; 2],
    pub offset: u64,
    pub bytes: u64,
}

fn is_access(text: &str) -> bool {
    access(text).is_ok()
}

fn access(text: &str) -> Result<Access, String> {
    let is = |words: [&str; 2]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(["r", "read"]) {
        Ok(Access::Read)
    } else if is(["w", "write"]) {
        Ok(Access::Write)
    } else {
        Err(format!("op {}; write r or w", quoted(text)))
    }
}

fn is_header(line: &str) -> bool {
    let first = line.split(',').next().unwrap_or("").trim();
    ["time", "time_ns", "timestamp", "asu", "device_id", "rw"]
        .iter()
        .any(|name| first.eq_ignore_ascii_case(name))
}

pub(super) fn detect(line: &str) -> Option<Table> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    if is_header(line) {
        return match (fields.len(), fields[0].to_ascii_lowercase().as_str()) {
            (7.., "timestamp") => Some(Table::Msr),
            (6, "timestamp") => Some(Table::Systor),
            (5.., "asu") => Some(Table::Spc),
            (5, "device_id") => Some(Table::Alibaba),
            (3, "rw") => Some(Table::FioLog1),
            _ => Some(Table::Plain),
        };
    }
    let numeric = |text: &str| text.parse::<u64>().is_ok();
    match fields.as_slice() {
        [_, _, _, op, _, _, _, ..] if is_access(op) => Some(Table::Msr),
        [_, _, op, _, _, _] if is_access(op) => Some(Table::Systor),
        [_, op, _, _, _] if is_access(op) => Some(Table::Alibaba),
        [_, _, _, op, _, ..] if is_access(op) => Some(Table::Spc),
        ["0" | "1", offset, length] if numeric(offset) && numeric(length) => Some(Table::FioLog1),
        [_, _, ..] => Some(Table::Plain),
        _ => None,
    }
}

pub(super) struct Delimited<R> {
    lines: Lines<R>,
    table: Table,
    names: Names,
    name: String,
    requests: u64,
}

impl<R: BufRead> Delimited<R> {
    pub(super) fn new(from: R, table: Table) -> Delimited<R> {
        let lines = Lines::new(from, MAX_LINE_BYTES);
        Delimited { lines, table, names: Names::default(), name: String::new(), requests: 0 }
    }

    fn take(&mut self, line: &str, out: &mut VecDeque<Event>) -> Result<(), String> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let row = match self.table {
            Table::Plain => plain::row(&fields),
            Table::FioLog1 => fio_log1::row(&fields, self.requests),
            Table::Msr => msr::row(&fields),
            Table::Spc => spc::row(&fields),
            Table::Systor => systor::row(&fields),
            Table::Alibaba => alibaba::row(&fields),
        }?;
        self.requests += 1;
        if row.bytes == 0 {
            return Ok(());
        }
        check_end(row.offset, row.bytes)?;
        self.name.clear();
        self.name.push_str(row.device[0]);
        if !row.device[1].is_empty() {
            self.name.push('_');
            self.name.push_str(row.device[1]);
        }
        let file = self.names.file(&self.name, Kind::BlockDevice, None, out)?;
        out.push_back(Event::Request(Request {
            at_ns: row.at_ns,
            duration_ns: row.duration_ns,
            thread: None,
            file,
            access: row.access,
            interface: Interface::Block,
            offset: Some(row.offset),
            bytes: row.bytes,
            result: row.duration_ns.and_then(|_| i64::try_from(row.bytes).ok()),
            open: OpenFile::default(),
        }));
        Ok(())
    }
}

impl<R: BufRead + Send> Reader for Delimited<R> {
    fn step(&mut self, out: &mut VecDeque<Event>) -> Result<bool> {
        let Some(line) = self.lines.next()? else { return Ok(false) };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || (self.requests == 0 && is_header(line)) {
            return Ok(true);
        }
        self.take(line, out).map_err(|reason| self.lines.wrong(reason))?;
        Ok(true)
    }
}

fn fields_expected(got: usize, form: &str) -> String {
    format!("{got} fields; write {form}")
}

/// Refuses 4 GiB and more: a queue takes a request's bytes as 32 bits.
fn bytes(name: &str, text: &str) -> Result<u64, String> {
    let bytes = number(name, text)?;
    if bytes > u64::from(u32::MAX) { Err("a request of 4 GiB or more".into()) } else { Ok(bytes) }
}
