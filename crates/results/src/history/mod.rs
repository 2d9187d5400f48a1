//! Everything measured so far, in one SQLite file.
//!
//! Several programs may read and write it at once (write-ahead log). An entry is one transaction: a killed writer loses at most its own.
//! A file of an older version is brought up to date when it is opened; a newer one is refused and left alone.

mod fingerprint;
mod migrations;
mod place;
mod trend;

pub use fingerprint::{Fingerprint, difference};
pub use trend::{Occurrence, Trend, trends};

use crate::compare::{Asked, Measure, Side};
use crate::document::{Kind, Program, Results};
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Another program that writes is waited for so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest document, as in a file of its own ([`crate::DOCUMENT`]).
const MAX_VALUE_BYTES: i32 = 64 << 20;

/// Between two tries to set a history up that others set up too.
const RETRY: Duration = Duration::from_millis(10);

/// Why the history cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Its directory cannot be made.
    #[error("cannot make the directory of the history {}: {source}; name another file with --history", path.display())]
    Directory {
        /// The history's file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// A file that cannot be a history.
    #[error("the history {}: {why}; name another file with --history, or leave it out with --no-history", path.display())]
    Refused {
        /// The history's file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// SQLite refuses.
    #[error("the history {}: {source}; name another file with --history, or leave it out with --no-history", path.display())]
    Sqlite {
        /// The history's file.
        path: PathBuf,
        /// SQLite's words.
        source: rusqlite::Error,
    },
    /// Another program's file.
    #[error("{}: a SQLite file, but no history of halfpower; name another file with --history", path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
    },
    /// A version of the future.
    #[error(
        "{}: a history of version {found}, and this halfpower knows up to {known}; use the newer program, or another file with --history",
        path.display()
    )]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that is known.
        known: i64,
    },
    /// No such file.
    #[error("{}: there is no history yet; every measurement begins one, unless --no-history is given", path.display())]
    Missing {
        /// Which file.
        path: PathBuf,
    },
    /// No such entry.
    #[error("the history has no entry {0}; halfpower history lists them")]
    NoEntry(i64),
    /// A document that cannot be kept or read.
    #[error("entry {id} of the history cannot be read: {why}")]
    Document {
        /// Its number.
        id: i64,
        /// What is wrong.
        why: String,
    },
}

impl HistoryError {
    /// Whether another file should have been named, as against a history that fails.
    pub fn is_usage(&self) -> bool {
        match self {
            HistoryError::Sqlite { source, .. } => {
                source.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase)
            }
            _ => true,
        }
    }
}

/// A history that is open.
pub struct History {
    connection: Connection,
    path: PathBuf,
}

/// An entry without its document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Its number.
    pub id: i64,
    /// Seconds since 1970-01-01 UTC when the measurement began.
    pub began_unix_s: u64,
    /// What was done: `run`, `sweep`, `study`, `postmark`, `metadata`, `compare`, `check`, `tune`.
    pub kind: String,
    /// What was measured.
    pub target: String,
    /// The machine's name.
    pub machine: String,
    /// What identifies machine, target and program: equal where nothing changed.
    pub fingerprint: String,
    /// The program's version.
    pub version: String,
    /// The command.
    pub command: String,
    /// Points and rates that were measured.
    pub readings: u64,
}

impl Entry {
    /// Whether its document is one of results.
    pub fn has_points(&self) -> bool {
        !WITHOUT_POINTS.contains(&self.kind.as_str())
    }
}

/// Which entries are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this target.
    pub target: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// At most so many, the newest.
    pub most: Option<u32>,
}

const ENTRY: &str = "id, began_unix_s, kind, target, machine, fingerprint, version, command, readings";

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
    })
}

/// The name of a kind of document.
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

/// A document that holds no points: a comparison, a tuning.
pub struct Other<'a> {
    /// Seconds since 1970-01-01 UTC when the measurement began.
    pub began_unix_s: u64,
    /// What was done: one of [`WITHOUT_POINTS`].
    pub kind: &'a str,
    /// What was measured, by a name that is the same from every directory.
    pub target: String,
    /// What it was measured on.
    pub fingerprint: Fingerprint,
    /// What made it.
    pub program: &'a Program,
    /// As JSON.
    pub document: String,
}

/// Kinds of entries that hold no points.
pub const WITHOUT_POINTS: [&str; 2] = ["compare", "tune"];

/// What is to be kept of a measurement.
struct New<'a> {
    other: Other<'a>,
    machine: &'a str,
    asked: Vec<Asked>,
}

impl History {
    /// Opens a history; makes it where there is none.
    ///
    /// # Errors
    /// A place that cannot be written, a file that is no history or of a newer version.
    pub fn open(path: &Path) -> Result<History, HistoryError> {
        let sqlite = |source| HistoryError::Sqlite { path: path.into(), source };
        let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let mut connection = Connection::open_with_flags(place::resolved(path)?, flags).map_err(sqlite)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES).map_err(sqlite)?;
        connection.busy_timeout(PATIENCE).map_err(sqlite)?;
        connection.pragma_update(None, "foreign_keys", true).map_err(sqlite)?;
        let began = Instant::now();
        loop {
            match migrations::migrate(&mut connection, path) {
                // A change of the journal's mode does not wait for other programs as statements do.
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

    /// Opens a history that is there.
    ///
    /// # Errors
    /// As [`History::open`], and no such file.
    pub fn open_existing(path: &Path) -> Result<History, HistoryError> {
        if path.exists() { History::open(path) } else { Err(HistoryError::Missing { path: path.into() }) }
    }

    fn sqlite(&self, source: rusqlite::Error) -> HistoryError {
        HistoryError::Sqlite { path: self.path.clone(), source }
    }

    /// Keeps a document of a target under the name of what made it, `kind` in place of the document's own where it is given; returns its
    /// number. The target is named so that it is the same from every directory.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&mut self, results: &Results, target: &str, kind: Option<&str>) -> Result<i64, HistoryError> {
        let document =
            crate::json::to_json(results).map_err(|error| HistoryError::Document { id: 0, why: error.to_string() })?;
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
        })
    }

    /// Keeps a comparison or a tuning; returns its number.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_other(&mut self, other: Other<'_>) -> Result<i64, HistoryError> {
        let machine = other.fingerprint.machine().to_owned();
        self.add(New { other, machine: &machine, asked: Vec::new() })
    }

    fn add(&mut self, New { other: new, machine, asked }: New<'_>) -> Result<i64, HistoryError> {
        let path = self.path.clone();
        let mut write = || -> rusqlite::Result<i64> {
            let transaction = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
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
                        let [low, high] =
                            reading.interval_95.map_or([None, None], |[low, high]| [Some(low), Some(high)]);
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
            }
            transaction.commit()?;
            Ok(id)
        };
        write().map_err(|source| HistoryError::Sqlite { path, source })
    }

    /// Entries, the newest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Entry>, HistoryError> {
        let read = || -> rusqlite::Result<Vec<Entry>> {
            let mut select = self.connection.prepare(&format!(
                "SELECT {ENTRY} FROM entries WHERE (?1 IS NULL OR target = ?1) AND (?2 IS NULL OR kind = ?2) \
                 ORDER BY began_unix_s DESC, id DESC LIMIT ?3"
            ))?;
            let most = filter.most.map_or(-1, i64::from);
            select.query_map(params![filter.target, filter.kind, most], entry)?.collect()
        };
        read().map_err(|source| self.sqlite(source))
    }

    /// One entry with its document as JSON.
    ///
    /// # Errors
    /// No such entry.
    pub fn get(&self, id: i64) -> Result<(Entry, String), HistoryError> {
        let row = self
            .connection
            .query_row(&format!("SELECT {ENTRY}, document FROM entries WHERE id = ?1"), [id], |row| {
                Ok((entry(row)?, row.get(9)?))
            })
            .optional()
            .map_err(|source| self.sqlite(source))?;
        row.ok_or(HistoryError::NoEntry(id))
    }

    /// The results of an entry.
    ///
    /// # Errors
    /// No such entry, or one that holds no results.
    pub fn results(&self, id: i64) -> Result<Results, HistoryError> {
        let (entry, document) = self.get(id)?;
        if !entry.has_points() {
            return Err(HistoryError::Document { id, why: format!("it is of {} and holds no points", entry.kind) });
        }
        serde_json::from_str(&document).map_err(|error| HistoryError::Document { id, why: error.to_string() })
    }

    /// Removes entries by number; returns how many there were.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn remove(&mut self, ids: &[i64]) -> Result<usize, HistoryError> {
        let path = self.path.clone();
        let mut write = || -> rusqlite::Result<usize> {
            let transaction = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let mut removed = 0;
            for id in ids {
                removed += transaction.execute("DELETE FROM entries WHERE id = ?1", [id])?;
            }
            transaction.commit()?;
            Ok(removed)
        };
        write().map_err(|source| HistoryError::Sqlite { path, source })
    }

    /// Gives the space of removed entries back to the file system.
    ///
    /// # Errors
    /// The file cannot be written, or another program holds it.
    pub fn compact(&self) -> Result<(), HistoryError> {
        self.connection.execute_batch("VACUUM").map_err(|source| self.sqlite(source))
    }

    /// All readings of one measure of a target by time, oldest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn occurrences(&self, target: &str, measure: Measure) -> Result<Vec<Occurrence>, HistoryError> {
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

    /// The facts behind an entry's fingerprint.
    ///
    /// # Errors
    /// No such entry.
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
