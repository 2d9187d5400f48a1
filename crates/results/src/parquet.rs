//! The CSV's columns, typed, in Parquet.

use crate::columns::Cell;
use crate::csv::{history_columns, history_rows};
use crate::document::Results;
use crate::history::Entry;
use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::Result;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct HistoryTable {
    rows: Vec<Vec<Option<Cell>>>,
}

impl HistoryTable {
    pub fn add(&mut self, entry: &Entry, results: &Results) {
        self.rows.extend(history_rows(entry, results));
    }

    /// One row per point; all columns are optional. Text becomes strings, whole numbers unsigned
    /// 64-bit integers, others doubles; an empty column is of doubles.
    pub fn to_parquet(&self) -> Result<Vec<u8>> {
        let names: Vec<&str> = history_columns().collect();
        let columns: Vec<Vec<Option<&Cell>>> = (0..names.len())
            .map(|place| self.rows.iter().map(|row| row[place].as_ref()).collect())
            .collect();
        let fields: Vec<TypePtr> = names
            .iter()
            .zip(&columns)
            .map(|(name, cells)| field(name, cells))
            .collect::<Result<_>>()?;
        let schema = Arc::new(Type::group_type_builder("points").with_fields(fields).build()?);
        let mut writer =
            SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::default()))?;
        let mut group = writer.next_row_group()?;
        let mut columns = columns.iter();
        while let Some(mut column) = group.next_column()? {
            let cells = columns.next().map_or(&[][..], Vec::as_slice);
            write(&mut column, cells)?;
            column.close()?;
        }
        group.close()?;
        writer.into_inner()
    }
}

/// A column's cells are of one kind.
fn field(name: &str, cells: &[Option<&Cell>]) -> Result<TypePtr> {
    let (physical, logical) = match cells.iter().flatten().next() {
        Some(Cell::Text(_)) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Some(Cell::Count(_)) => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Some(Cell::Number(_)) | None => (Physical::DOUBLE, None),
    };
    let column = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    Ok(Arc::new(column.with_logical_type(logical).build()?))
}

fn write(column: &mut SerializedColumnWriter<'_>, cells: &[Option<&Cell>]) -> Result<()> {
    match cells.iter().flatten().next() {
        Some(Cell::Text(_)) => write_as::<ByteArrayType>(column, cells, |cell| match cell {
            Cell::Text(text) => Some(ByteArray::from(text.as_str())),
            _ => None,
        }),
        Some(Cell::Count(_)) => write_as::<Int64Type>(column, cells, |cell| match cell {
            // The same 64 bits: the column type is unsigned.
            Cell::Count(count) => Some(count.cast_signed()),
            _ => None,
        }),
        Some(Cell::Number(_)) | None => write_as::<DoubleType>(column, cells, |cell| match cell {
            Cell::Number(number) => Some(*number),
            _ => None,
        }),
    }
}

fn write_as<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: &[Option<&Cell>],
    value: impl Fn(&Cell) -> Option<T::T>,
) -> Result<()> {
    let values: Vec<Option<T::T>> = cells.iter().map(|cell| cell.and_then(&value)).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn written_tables_can_be_read() {
        let names: Vec<&str> = history_columns().collect();
        let row = |entry: u64, rate: Option<f64>| {
            let cell = |name: &&str| match *name {
                "entry" => Some(Cell::Count(entry)),
                "target" => Some(Cell::Text("/data, \u{e9}".into())),
                "throughput_bytes_per_s" => rate.map(Cell::Number),
                _ => None,
            };
            names.iter().map(cell).collect::<Vec<_>>()
        };
        let table = HistoryTable {
            rows: vec![row(1, None), row(u64::MAX, Some(1.5e9)), row(3, Some(2.25))],
        };
        let reader = SerializedFileReader::new(written(&table)).unwrap();
        let columns = |row: &::parquet::record::Row| -> Vec<(String, Field)> {
            row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect()
        };
        let rows: Vec<Vec<(String, Field)>> =
            reader.get_row_iter(None).unwrap().map(|row| columns(&row.unwrap())).collect();
        assert_eq!(rows.len(), 3);
        let of = |row: usize, name: &str| {
            rows[row].iter().find(|(known, _)| known == name).unwrap().1.clone()
        };
        assert_eq!(rows[0].iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), names);
        assert_eq!(of(1, "entry"), Field::ULong(u64::MAX));
        assert_eq!(of(2, "target"), Field::Str("/data, \u{e9}".into()));
        assert_eq!(
            [0, 1, 2].map(|row| of(row, "throughput_bytes_per_s")),
            [Field::Null, Field::Double(1.5e9), Field::Double(2.25)]
        );
        assert_eq!(of(0, "error"), Field::Null);
    }

    #[test]
    fn an_empty_history_is_an_empty_table() {
        let reader = SerializedFileReader::new(written(&HistoryTable::default())).unwrap();
        assert_eq!(reader.get_row_iter(None).unwrap().count(), 0);
    }

    fn written(table: &HistoryTable) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&table.to_parquet().unwrap()).unwrap();
        file
    }
}
