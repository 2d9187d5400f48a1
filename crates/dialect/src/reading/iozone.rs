use super::case::case;
use results::compare::{Measure, Measurement, Reading};

/// In column order, with widths.
pub(super) const TESTS: [(&str, usize); 21] = [
    ("write", 9),
    ("rewrite", 9),
    ("read", 9),
    ("reread", 9),
    ("random read", 9),
    ("random write", 9),
    ("backward read", 9),
    ("record rewrite", 10),
    ("stride read", 10),
    ("fwrite", 9),
    ("frewrite", 9),
    ("fread", 9),
    ("freread", 9),
    ("pwrite", 10),
    ("repwrite", 10),
    ("pread", 10),
    ("repread", 10),
    ("pwritev", 10),
    ("repwritev", 10),
    ("preadv", 10),
    ("repreadv", 10),
];
const SIZES: [usize; 2] = [16, 8];

pub(super) fn reading(text: &str, value: f64) -> Reading {
    if text.contains("operations per second") {
        Reading::value(Measure::Iops, value)
    } else if text.contains("Microseconds/op") {
        Reading::value(Measure::LatencyMean, value * 1e3)
    } else {
        Reading::value(Measure::Throughput, value * 1024.0)
    }
}

pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut all = Vec::new();
    let mut columns = None;
    for (number, line) in text.lines().enumerate() {
        if let Some(head) = Columns::of(line) {
            columns = Some(head);
            continue;
        }
        let Some(head) = &columns else { continue };
        match head.row(line).map_err(|why| format!("line {}: {why}", number + 1))? {
            Some(row) => all.extend(row.cases(text)),
            None => columns = None,
        }
    }
    if all.is_empty() {
        return Err("it has no table of file and record sizes".into());
    }
    Ok(all)
}

struct Columns {
    /// The table may be indented or quoted.
    indent: usize,
    names: usize,
}

/// Sizes are in KiB.
struct Row {
    sizes: [f64; 2],
    figures: Vec<(&'static str, f64)>,
}

impl Columns {
    fn of(line: &str) -> Option<Columns> {
        let words: Vec<&str> = line.split_whitespace().skip_while(|word| *word != "kB").collect();
        if words.get(1) != Some(&"reclen") {
            return None;
        }
        let end = line[..line.find("kB")?].chars().count() + "kB".len();
        Some(Columns { indent: end.saturating_sub(SIZES[0]), names: words.len() })
    }

    /// `None`: the table has ended.
    fn row(&self, line: &str) -> Result<Option<Row>, String> {
        let cells = cells(line, self.indent);
        if cells.is_empty() {
            return Ok(None);
        }
        let widths = || SIZES.into_iter().chain(TESTS.map(|(_, width)| width));
        let columns: Vec<usize> = if cells.len() == self.names {
            // Nothing is missing, so wide figures that shift the rest do no harm.
            (0..cells.len()).collect()
        } else {
            let place = |(end, text): &(usize, String)| {
                let mut column_end = 0;
                let found = widths().position(|width| {
                    column_end += width;
                    column_end == *end
                });
                found.ok_or_else(|| {
                    format!("'{text}' does not end where a column of IOzone's table ends; give the table as IOzone prints it")
                })
            };
            cells.iter().map(place).collect::<Result<_, _>>()?
        };
        let mut values = Vec::new();
        for (column, (_, text)) in columns.iter().zip(&cells) {
            let value: f64 =
                text.parse().map_err(|_| format!("'{text}' is not a number of IOzone's table"))?;
            values.push((*column, value));
        }
        let (Some(&(0, file)), Some(&(1, record))) = (values.first(), values.get(1)) else {
            return Err("the row has no file size and record size".into());
        };
        let test = |(column, value): &(usize, f64)| {
            let test = TESTS.get(column - SIZES.len());
            test.map(|(name, _)| (*name, *value))
                .ok_or("the row has more figures than IOzone's table has columns")
        };
        let figures = values[SIZES.len()..].iter().map(test).collect::<Result<_, _>>()?;
        Ok(Some(Row { sizes: [file, record], figures }))
    }
}

impl Row {
    fn cases(self, text: &str) -> Vec<Measurement> {
        let [file, record] = self.sizes;
        let case = |(test, value): (&str, f64)| {
            let settings = [
                ("test", test.to_string()),
                ("file KiB", file.to_string()),
                ("record KiB", record.to_string()),
            ];
            case(test, &settings, vec![reading(text, value)])
        };
        self.figures.into_iter().map(case).collect()
    }
}

/// Words, each with the column behind it.
fn cells(line: &str, indent: usize) -> Vec<(usize, String)> {
    let mut cells: Vec<(usize, String)> = Vec::new();
    let mut blank = true;
    for (column, character) in line.chars().skip(indent).enumerate() {
        if character.is_whitespace() {
            blank = true;
            continue;
        }
        if std::mem::take(&mut blank) {
            cells.push((0, String::new()));
        }
        if let Some((end, text)) = cells.last_mut() {
            text.push(character);
            *end = column + 1;
        }
    }
    cells
}
