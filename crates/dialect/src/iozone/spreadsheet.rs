//! BIFF 2, the oldest Excel format: records of type and length (16 bits each, little-endian) and
//! data; cells begin with row, column and three bytes.

use super::report::{spreadsheet_head, tables, throughput_rows};
use super::{IozoneResult, Options};

const BOF: u16 = 0x0009;
const EOF: u16 = 0x000A;
const NUMBER: u16 = 0x0003;
const LABEL: u16 = 0x0004;

/// The format's limit; that on columns is 2^8.
const MAX_ROWS: usize = 1 << 14;

fn record(sheet: &mut Vec<u8>, kind: u16, data: &[u8]) {
    sheet.extend(kind.to_le_bytes());
    sheet.extend((data.len() as u16).to_le_bytes());
    sheet.extend(data);
}

fn cell(row: usize, column: usize) -> Vec<u8> {
    let mut data = Vec::with_capacity(16);
    data.extend((row as u16).to_le_bytes());
    data.extend((column as u16).to_le_bytes());
    data.extend([0; 3]);
    data
}

fn label(sheet: &mut Vec<u8>, row: usize, column: usize, text: &str) {
    let mut data = cell(row, column);
    let bytes = &text.as_bytes()[..text.len().min(255)];
    data.push(bytes.len() as u8);
    data.extend(bytes);
    record(sheet, LABEL, &data);
}

fn number(sheet: &mut Vec<u8>, row: usize, column: usize, value: f64) {
    let mut data = cell(row, column);
    data.extend(value.to_le_bytes());
    record(sheet, NUMBER, &data);
}

/// The tables of `-R` with sizes in kB, or the throughput mode's figures.
pub fn spreadsheet(options: &Options, result: &IozoneResult) -> Vec<u8> {
    let mut sheet = Vec::new();
    // Version 2, a worksheet.
    record(&mut sheet, BOF, &[2, 0, 0x10, 0]);
    let head = spreadsheet_head(options, result);
    head.iter().enumerate().for_each(|(row, text)| label(&mut sheet, row, 0, text));
    let mut row = head.len();
    if !result.throughput.is_empty() {
        for (test, values) in throughput_rows(options, result) {
            label(&mut sheet, row, 0, test);
            numbers(&mut sheet, row, values.into_iter().map(Some));
            row += 1;
        }
    }
    let tables = if result.throughput.is_empty() { tables(options, result) } else { Vec::new() };
    for (title, records, rows) in tables {
        if row + rows.len() + 2 > MAX_ROWS {
            break;
        }
        label(&mut sheet, row, 0, &title.replace(" report", " Report"));
        numbers(&mut sheet, row + 1, records.iter().map(|bytes| Some((bytes / 1024) as f64)));
        row += 2;
        for (file, values) in rows {
            number(&mut sheet, row, 0, (file / 1024) as f64);
            numbers(&mut sheet, row, values.into_iter());
            row += 1;
        }
    }
    record(&mut sheet, EOF, &[]);
    sheet
}

fn numbers(sheet: &mut Vec<u8>, row: usize, values: impl Iterator<Item = Option<f64>>) {
    for (column, value) in values.take(254).enumerate() {
        value.into_iter().for_each(|value| number(sheet, row, column + 1, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_as_the_format_has_them() {
        let mut sheet = Vec::new();
        number(&mut sheet, 1, 2, 1.0);
        label(&mut sheet, 0x0102, 0, "ab");
        let expected: Vec<u8> = [
            &[3, 0, 15, 0, 1, 0, 2, 0, 0, 0, 0][..],
            &1.0f64.to_le_bytes(),
            &[4, 0, 10, 0, 2, 1, 0, 0, 0, 0, 0, 2, b'a', b'b'],
        ]
        .concat();
        assert_eq!(sheet, expected);
    }
}
