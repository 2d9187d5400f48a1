use super::HistoryError;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// SQLite's application ID: "hpwr".
const APPLICATION: i64 = 0x6870_7772;

/// Their number is the current version. A released step never changes.
pub(super) const STEPS: [&str; 4] = [
    "CREATE TABLE entries (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        began_unix_s INTEGER NOT NULL,
        kind TEXT NOT NULL,
        target TEXT NOT NULL,
        machine TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        version TEXT NOT NULL,
        command TEXT NOT NULL,
        readings INTEGER NOT NULL,
        -- The long ones come last: a list never reads their pages.
        facts TEXT NOT NULL,
        document TEXT NOT NULL
    );
    CREATE TABLE readings (
        entry INTEGER NOT NULL REFERENCES entries(id) ON DELETE CASCADE,
        question TEXT NOT NULL,
        label TEXT NOT NULL,
        measure TEXT NOT NULL,
        value REAL NOT NULL,
        low REAL,
        high REAL
    );
    CREATE INDEX readings_of_entry ON readings(entry, measure);",
    "CREATE INDEX entries_of_target ON entries(target, began_unix_s);
    CREATE INDEX entries_by_time ON entries(began_unix_s);",
    "CREATE TABLE baselines (
        target TEXT PRIMARY KEY,
        entry INTEGER NOT NULL REFERENCES entries(id) ON DELETE CASCADE
    );",
    // Columns of entries would come after the documents.
    "CREATE TABLE notes (
        entry INTEGER PRIMARY KEY REFERENCES entries(id) ON DELETE CASCADE,
        note TEXT NOT NULL
    );
    CREATE TABLE tags (
        entry INTEGER NOT NULL REFERENCES entries(id) ON DELETE CASCADE,
        tag TEXT NOT NULL,
        PRIMARY KEY (entry, tag)
    );",
];

pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), HistoryError> {
    let sqlite = |source| HistoryError::Sqlite { path: path.into(), source };
    let known = STEPS.len() as i64;
    let state = |connection: &Connection| -> rusqlite::Result<(i64, i64, bool)> {
        let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
        Ok((number("application_id")?, number("user_version")?, tables > 0))
    };
    let (application, version, used) = state(connection).map_err(sqlite)?;
    if used && application != APPLICATION {
        return Err(HistoryError::Foreign { path: path.into() });
    }
    if version > known {
        return Err(HistoryError::Newer { path: path.into(), found: version, known });
    }
    if version == known {
        return Ok(());
    }
    // Lets readers continue while a writer writes. The mode is stored in the file.
    connection.pragma_update(None, "journal_mode", "WAL").map_err(sqlite)?;
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sqlite)?;
    // Another process may have migrated it first.
    let (_, version, _) = state(&transaction).map_err(sqlite)?;
    if (0..known).contains(&version) {
        for step in &STEPS[version as usize..] {
            transaction.execute_batch(step).map_err(sqlite)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION).map_err(sqlite)?;
        transaction.pragma_update(None, "user_version", known).map_err(sqlite)?;
    }
    transaction.commit().map_err(sqlite)
}
