//! The workloads of most disk benchmarks.

use crate::format::grouped;
use machine::units::significant;
use results::{ClassicRate, ClassicRow, Overview};

const MB: f64 = 1e6;

pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) note: Option<&'static str>,
}

pub(crate) fn view(overview: &Overview) -> Option<Table> {
    type Of = fn(&ClassicRow) -> Option<ClassicRate>;
    let operations: [(&str, Of); 3] =
        [("read", |row| row.read), ("write", |row| row.write), ("mix", |row| row.mix)];
    let rows = &overview.classic;
    let measured: Vec<_> =
        operations.iter().filter(|(_, of)| rows.iter().any(|row| of(row).is_some())).collect();
    if measured.is_empty() {
        return None;
    }
    let heads = measured.iter().flat_map(|(name, _)| [format!("{name} MB/s"), "IOPS".into()]);
    let row = |row: &ClassicRow| {
        let cells = measured.iter().flat_map(|(_, of)| match of(row) {
            Some(rate) => {
                let mark = if rate.burst { "*" } else { "" };
                [megabytes(rate.throughput_bytes_per_s) + mark, grouped(rate.iops) + mark]
            }
            None => [String::new(), String::new()],
        });
        std::iter::once(row.name.clone()).chain(cells).collect()
    };
    let bursts = rows
        .iter()
        .any(|row| operations.iter().filter_map(|(_, of)| of(row)).any(|rate| rate.burst));
    let is_measured = |row: &&ClassicRow| operations.iter().any(|(_, of)| of(row).is_some());
    Some(Table {
        note: bursts.then_some("* a burst, which does not last"),
        head: std::iter::once(String::new()).chain(heads).collect(),
        rows: rows.iter().filter(is_measured).map(row).collect(),
    })
}

fn megabytes(bytes_per_s: f64) -> String {
    let rate = bytes_per_s / MB;
    if rate >= 100.0 { grouped(rate.round()) } else { significant(rate, 3) }
}
