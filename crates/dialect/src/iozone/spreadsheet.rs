//! A spreadsheet file: BIFF 2, the oldest of the Excel formats, which every spreadsheet still opens.
//!
//! A file is a sequence of records: type and length (16 bits each, little-endian), then the data. BOF opens a sheet, LABEL and NUMBER
//! fill cells (row and column in 16 bits, three bytes of attributes), EOF closes it.

use super::report::tables;
use super::{IozoneResult, Options};

const BOF: u16 = 0x0009;
const EOF: u16 = 0x000A;
const NUMBER: u16 = 0x0003;
const LABEL: u16 = 0x0004;

/// The most rows and columns of the format: 2^14 and 2^8.
const MOST_ROWS: usize = 1 << 14;

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

/// The tables of `-R` as a spreadsheet: sizes in kB, one table below another.
pub fn spreadsheet(options: &Options, result: &IozoneResult) -> Vec<u8> {
    let mut sheet = Vec::new();
    // Version 2, a worksheet.
    record(&mut sheet, BOF, &[2, 0, 0x10, 0]);
    let mut row = 0;
    for (title, records, rows) in tables(options, result) {
        if row + rows.len() + 3 > MOST_ROWS {
            break;
        }
        label(&mut sheet, row, 0, &title);
        row += 1;
        records
            .iter()
            .take(254)
            .enumerate()
            .for_each(|(column, bytes)| number(&mut sheet, row, column + 1, (bytes / 1024) as f64));
        for (file, values) in rows {
            row += 1;
            number(&mut sheet, row, 0, (file / 1024) as f64);
            let known = values.iter().take(254).enumerate().filter_map(|(column, value)| Some((column, (*value)?)));
            known.for_each(|(column, value)| number(&mut sheet, row, column + 1, value));
        }
        row += 2;
    }
    record(&mut sheet, EOF, &[]);
    sheet
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
