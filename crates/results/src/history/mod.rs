//! One SQLite file that several processes may use (write-ahead log). Opening migrates an older file
//! and refuses a newer one.

mod fingerprint;
mod migrations;
mod place;
mod trend;

pub use fingerprint::{Fingerprint, difference};
pub use trend::{Occurrence, Trend, trends};

use crate::compare::{Measure, Measurement, Side};
use crate::document::{Kind, Program, Results};
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// For another writer.
const PATIENCE: Duration = Duration::from_secs(10);

/// As for a file ([`crate::DOCUMENT`]).
const MAX_VALUE_BYTES: i32 = 64 << 20;

/// While another process creates the history.
const RETRY: Duration = Duration::from_millis(10);

#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("cannot make the directory of the history {}: {source}; name another file with --history", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("the history {}: {why}; name another file with --history, or leave it out with --no-history", path.display())]
    Refused { path: PathBuf, why: String },
    #[error("the history {}: {source}; name another file with --history, or leave it out with --no-history", path.display())]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    #[error("{}: a SQLite file, but no history of halfpower; name another file with --history", path.display())]
    Foreign { path: PathBuf },
    #[error(
        "{}: a history of version {found}, and this halfpower knows up to {known}; use the newer program, or another file with --history",
        path.display()
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("{}: no history yet; any measurement without --no-history creates it", path.display())]
    Missing { path: PathBuf },
    #[error("the history has no entry {0}; halfpower history lists them")]
    NoEntry(i64),
    #[error("entry {id} of the history cannot be read: {why}")]
    Document { id: i64, why: String },
}

impl HistoryError {
    /// The user named a wrong file or entry.
    pub fn is_usage(&self) -> bool {
        match self {
            HistoryError::Sqlite { source, .. } => {
                source.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase)
            }
            _ => true,
        }
    }
}

pub struct History {
    connection: Connection,
    path: PathBuf,
}

/// Without the document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    pub id: i64,
    pub began_unix_s: u64,
    /// Such as `run`, or one of [`WITHOUT_POINTS`].
    pub kind: String,
    pub target: String,
    pub machine: String,
    /// Of machine, target and program facts.
    pub fingerprint: String,
    pub version: String,
    pub command: String,
    /// Measured points and rates.
    pub readings: u64,
    /// A study's peak, else the highest rate of a point.
    pub best_bytes_per_s: Option<f64>,
    /// Of the same point.
    pub best_p99_ns: Option<f64>,
    pub note: Option<String>,
    /// In alphabetical order.
    pub tags: Vec<String>,
}

impl Entry {
    /// The document holds results.
    pub fn has_points(&self) -> bool {
        !WITHOUT_POINTS.contains(&self.kind.as_str())
    }
}

#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub target: Option<String>,
    pub kind: Option<String>,
    pub tag: Option<String>,
    /// Keeps only the newest entries.
    pub max: Option<u32>,
}

/// Measures as in [`Measure::name`], and those of [`Best`], which imports and old entries lack.
const ENTRY: &str = "id, began_unix_s, kind, target, machine, fingerprint, version, command, readings, \
    coalesce((SELECT value FROM readings WHERE entry = entries.id AND measure = 'best_bytes_per_s'), \
        (SELECT max(value) FROM readings WHERE entry = entries.id AND measure = 'throughput_bytes_per_s')), \
    CASE WHEN EXISTS (SELECT 1 FROM readings WHERE entry = entries.id AND measure = 'best_bytes_per_s') \
        THEN (SELECT value FROM readings WHERE entry = entries.id AND measure = 'best_p99_ns') \
        ELSE (SELECT value FROM readings WHERE entry = entries.id AND measure = 'latency_p99_ns' AND question = \
            (SELECT question FROM readings WHERE entry = entries.id AND measure = 'throughput_bytes_per_s' ORDER BY value DESC LIMIT 1)) END, \
    (SELECT note FROM notes WHERE entry = entries.id), \
    (SELECT group_concat(tag, ' ') FROM (SELECT tag FROM tags WHERE entry = entries.id ORDER BY tag))";

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        id: row.get(0)?,
        began_unix_s: row.get::<_, i64>(1)?.max(0) as u64,
        kind: row.get(2)?,
        target: row.get(3)?,
        machine: row.get(4)?,
        fingerprint: row.get(5)?,
        version: row.get(6)?,
        command: row.get(7)?,
        readings: row.get::<_, i64>(8)?.max(0) as u64,
        best_bytes_per_s: row.get(9)?,
        best_p99_ns: row.get(10)?,
        note: row.get(11)?,
        tags: row
            .get::<_, Option<String>>(12)?
            .map_or_else(Vec::new, |tags| tags.split(' ').map(str::to_owned).collect()),
    })
}

pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Study => "study",
        Kind::Stack => "stack",
        Kind::Sweep => "sweep",
        Kind::Run => "run",
        Kind::Postmark => "postmark",
        Kind::Metadata => "metadata",
    }
}

/// An entry without points.
pub struct Other<'a> {
    pub began_unix_s: u64,
    /// One of [`WITHOUT_POINTS`].
    pub kind: &'a str,
    /// Independent of the current directory.
    pub target: String,
    pub fingerprint: Fingerprint,
    pub program: &'a Program,
    /// As JSON.
    pub document: String,
}

pub const WITHOUT_POINTS: [&str; 6] = ["compare", "tune", "import", "sustained", "pts", "replay"];

struct New<'a> {
    other: Other<'a>,
    machine: &'a str,
    asked: Vec<Measurement>,
    best: Option<Best>,
}

/// The list's figures, the same as in the answer and the tables.
struct Best {
    bytes_per_s: f64,
    p99_ns: Option<u64>,
}

impl Best {
    fn of(results: &Results) -> Option<Best> {
        // Points from a page cache may be faster than what a study calls its peak.
        let peaks = results.answer.iter().flat_map(|answer| &answer.peaks);
        let peaks = peaks.map(|peak| (peak.throughput_bytes_per_s, peak.point));
        let points = results.points.iter().enumerate();
        let points = points.filter_map(|(index, point)| Some((point.rate()?, index)));
        let highest = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0);
        let (bytes_per_s, point) = peaks.max_by(highest).or_else(|| points.max_by(highest))?;
        let numbers = results.points.get(point).and_then(|point| point.numbers.as_ref());
        Some(Best {
            bytes_per_s,
            p99_ns: numbers.and_then(|numbers| numbers.latency_ns.settled_p99()),
        })
    }

    fn readings(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let p99 = self.p99_ns.map(|ns| ("best_p99_ns", ns as f64));
        std::iter::once(("best_bytes_per_s", self.bytes_per_s)).chain(p99)
    }
}

impl History {
    /// Creates a missing file.
    pub fn open(path: &Path) -> Result<History, HistoryError> {
        let sqlite = |source| HistoryError::Sqlite { path: path.into(), source };
        let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let mut connection =
            Connection::open_with_flags(place::resolved(path)?, flags).map_err(sqlite)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES).map_err(sqlite)?;
        connection.busy_timeout(PATIENCE).map_err(sqlite)?;
        connection.pragma_update(None, "foreign_keys", true).map_err(sqlite)?;
        let began = Instant::now();
        loop {
            match migrations::migrate(&mut connection, path) {
                // Unlike statements, a change of the journal mode does not wait for other
                // processes.
                Err(HistoryError::Sqlite { source, .. })
                    if source.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                        && began.elapsed() < PATIENCE =>
                {
                    std::thread::sleep(RETRY);
                }
                migrated => break migrated?,
            }
        }
        Ok(History { connection, path: path.into() })
    }

    pub fn open_existing(path: &Path) -> Result<History, HistoryError> {
        if path.exists() {
            History::open(path)
        } else {
            Err(HistoryError::Missing { path: path.into() })
        }
    }

    fn sqlite(&self, source: rusqlite::Error) -> HistoryError {
        HistoryError::Sqlite { path: self.path.clone(), source }
    }

    /// Returns the entry's number. `kind` overrides the document's own; `target` must not depend on
    /// the current directory.
    pub fn keep(
        &mut self,
        results: &Results,
        target: &str,
        kind: Option<&str>,
    ) -> Result<i64, HistoryError> {
        let document = crate::json::to_json(results)
            .map_err(|error| HistoryError::Document { id: 0, why: error.to_string() })?;
        self.add(New {
            other: Other {
                began_unix_s: results.began_unix_s,
                kind: kind.unwrap_or(kind_name(results.kind)),
                target: target.into(),
                fingerprint: Fingerprint::of(results),
                program: &results.program,
                document,
            },
            machine: &results.machine.name,
            asked: Side::of("", results).asked,
            best: Best::of(results),
        })
    }

    /// The entry's number.
    pub fn keep_other(
        &mut self,
        other: Other<'_>,
        asked: Vec<Measurement>,
    ) -> Result<i64, HistoryError> {
        let machine = other.fingerprint.machine().to_owned();
        self.add(New { other, machine: &machine, asked, best: None })
    }

    fn add(
        &mut self,
        New { other: new, machine, asked, best }: New<'_>,
    ) -> Result<i64, HistoryError> {
        let path = self.path.clone();
        let mut write = || -> rusqlite::Result<i64> {
            let transaction = self
                .connection
                .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let readings = asked.iter().filter(|asked| !asked.readings.is_empty()).count();
            transaction.execute(
                "INSERT INTO entries (began_unix_s, kind, target, machine, fingerprint, facts, version, command, document, readings) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                params![
                    i64::try_from(new.began_unix_s).unwrap_or(i64::MAX),
                    new.kind,
                    new.target,
                    machine,
                    new.fingerprint.text(),
                    new.fingerprint.facts_json(),
                    new.program.version,
                    new.program.arguments.join(" "),
                    new.document,
                    readings as i64
                ],
            )?;
            let id = transaction.last_insert_rowid();
            {
                let mut insert = transaction.prepare(
                    "INSERT INTO readings (entry, question, label, measure, value, low, high) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?;
                for asked in &asked {
                    for reading in &asked.readings {
                        let [low, high] = reading
                            .interval_95
                            .map_or([None, None], |[low, high]| [Some(low), Some(high)]);
                        insert.execute(params![
                            id,
                            asked.question,
                            asked.label,
                            reading.measure.name(),
                            reading.value,
                            low,
                            high
                        ])?;
                    }
                }
                for (measure, value) in best.iter().flat_map(Best::readings) {
                    let none: Option<f64> = None;
                    insert.execute(params![id, "", "", measure, value, none, none])?;
                }
            }
            transaction.commit()?;
            Ok(id)
        };
        write().map_err(|source| HistoryError::Sqlite { path, source })
    }

    /// Newest first.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Entry>, HistoryError> {
        let read = || -> rusqlite::Result<Vec<Entry>> {
            let mut select = self.connection.prepare(&format!(
                "SELECT {ENTRY} FROM entries WHERE (?1 IS NULL OR target = ?1) AND (?2 IS NULL OR kind = ?2) \
                 AND (?4 IS NULL OR id IN (SELECT entry FROM tags WHERE tag = ?4)) \
                 ORDER BY began_unix_s DESC, id DESC LIMIT ?3"
            ))?;
            let max = filter.max.map_or(-1, i64::from);
            select.query_map(params![filter.target, filter.kind, max, filter.tag], entry)?.collect()
        };
        read().map_err(|source| self.sqlite(source))
    }

    /// With the document as JSON.
    pub fn get(&self, id: i64) -> Result<(Entry, String), HistoryError> {
        let row = self
            .connection
            .query_row(
                &format!("SELECT {ENTRY}, document FROM entries WHERE id = ?1"),
                [id],
                |row| Ok((entry(row)?, row.get(13)?)),
            )
            .optional()
            .map_err(|source| self.sqlite(source))?;
        row.ok_or(HistoryError::NoEntry(id))
    }

    /// # Errors
    /// The entry holds no results.
    pub fn results(&self, id: i64) -> Result<Results, HistoryError> {
        let (entry, document) = self.get(id)?;
        if !entry.has_points() {
            return Err(HistoryError::Document {
                id,
                why: format!("it is of {} and holds no points", entry.kind),
            });
        }
        serde_json::from_str(&document)
            .map_err(|error| HistoryError::Document { id, why: error.to_string() })
    }

    /// For a target's checks.
    pub fn set_baseline(&mut self, target: &str, id: i64) -> Result<(), HistoryError> {
        self.get(id)?;
        self.connection
            .execute(
                "INSERT INTO baselines (target, entry) VALUES (?1, ?2) \
                 ON CONFLICT (target) DO UPDATE SET entry = excluded.entry",
                params![target, id],
            )
            .map_err(|source| self.sqlite(source))?;
        Ok(())
    }

    /// `None` also if the chosen entry was removed.
    pub fn baseline(&self, target: &str) -> Result<Option<i64>, HistoryError> {
        self.connection
            .query_row("SELECT entry FROM baselines WHERE target = ?1", [target], |row| row.get(0))
            .optional()
            .map_err(|source| self.sqlite(source))
    }

    /// Replaces any earlier note; an empty one removes it.
    pub fn set_note(&mut self, id: i64, note: &str) -> Result<(), HistoryError> {
        self.get(id)?;
        let written = if note.is_empty() {
            self.connection.execute("DELETE FROM notes WHERE entry = ?1", [id])
        } else {
            let insert = "INSERT INTO notes (entry, note) VALUES (?1, ?2) \
                 ON CONFLICT (entry) DO UPDATE SET note = excluded.note";
            self.connection.execute(insert, params![id, note])
        };
        written.map(drop).map_err(|source| self.sqlite(source))
    }

    /// Adds or removes a one-word tag.
    pub fn set_tag(&mut self, id: i64, tag: &str, there: bool) -> Result<(), HistoryError> {
        self.get(id)?;
        let change = if there {
            "INSERT OR IGNORE INTO tags (entry, tag) VALUES (?1, ?2)"
        } else {
            "DELETE FROM tags WHERE entry = ?1 AND tag = ?2"
        };
        let written = self.connection.execute(change, params![id, tag]);
        written.map(drop).map_err(|source| self.sqlite(source))
    }

    /// How many entries existed.
    pub fn remove(&mut self, ids: &[i64]) -> Result<usize, HistoryError> {
        let path = self.path.clone();
        let mut write = || -> rusqlite::Result<usize> {
            let transaction = self
                .connection
                .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let mut removed = 0;
            for id in ids {
                removed += transaction.execute("DELETE FROM entries WHERE id = ?1", [id])?;
            }
            transaction.commit()?;
            Ok(removed)
        };
        write().map_err(|source| HistoryError::Sqlite { path, source })
    }

    /// Returns unused space to the file system. Fails if another process has locked the file.
    pub fn compact(&self) -> Result<(), HistoryError> {
        self.connection.execute_batch("VACUUM").map_err(|source| self.sqlite(source))
    }

    /// Oldest first.
    pub fn occurrences(
        &self,
        target: &str,
        measure: Measure,
    ) -> Result<Vec<Occurrence>, HistoryError> {
        let read = || -> rusqlite::Result<Vec<Occurrence>> {
            let mut select = self.connection.prepare(
                "SELECT e.id, e.began_unix_s, e.fingerprint, e.version, r.question, r.label, r.value, r.low, r.high FROM entries e \
                 JOIN readings r ON r.entry = e.id WHERE e.target = ?1 AND r.measure = ?2 ORDER BY e.began_unix_s, e.id, r.rowid",
            )?;
            let rows = select.query_map(params![target, measure.name()], |row| {
                let (low, high): (Option<f64>, Option<f64>) = (row.get(7)?, row.get(8)?);
                Ok(Occurrence {
                    entry: row.get(0)?,
                    began_unix_s: row.get::<_, i64>(1)?.max(0) as u64,
                    fingerprint: row.get(2)?,
                    version: row.get(3)?,
                    question: row.get(4)?,
                    label: row.get(5)?,
                    value: row.get(6)?,
                    interval_95: low.zip(high).map(|(low, high)| [low, high]),
                })
            })?;
            rows.collect()
        };
        read().map_err(|source| self.sqlite(source))
    }

    pub fn fingerprint(&self, id: i64) -> Result<Fingerprint, HistoryError> {
        let facts: Option<String> = self
            .connection
            .query_row("SELECT facts FROM entries WHERE id = ?1", [id], |row| row.get(0))
            .optional()
            .map_err(|source| self.sqlite(source))?;
        Ok(Fingerprint::from_facts_json(&facts.ok_or(HistoryError::NoEntry(id))?))
    }
}

#[cfg(test)]
mod tests;
