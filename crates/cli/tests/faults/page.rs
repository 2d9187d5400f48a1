//! Generates docs/reliability.md from the table.

use crate::play::{Ends, Row, Step};
use crate::table::{Section, TABLE};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reliability.md");

const HEAD: &str = "\
# Reliability

This page lists the faults that halfpower is tested with, and how each command must end.
`cargo test -p halfpower --test faults` produces every fault on a real kernel: loop devices, file systems in memory, a
FUSE file system that fails on request, limits, signals. It then runs the commands in the second column. Run it as root.
A fault that this computer cannot produce is skipped, with a message.

Every command ends by itself, without a panic, with a message if it fails, and without control characters that steer a
terminal. A refusal (exit code 2) comes before anything is changed; a failure has exit code 1, an interrupt 130.
Afterwards every file in the directory is as it was, except those in the last column.

The loops that serve requests are tested separately, in virtual time and from seeds, over a kernel that fails, loses,
delays and refuses requests (`crates/host/src/serve_faults.rs`). The rules of `--verify` are tested the same way
(`crates/workload/src/verify/interleavings.rs`). The parsers are fuzzed (`fuzz/`).

`crates/cli/tests/faults/table.rs` generates this page.
";

const TAIL: &str = "
## Not tested

- Hardware that is absent here: NVMe, SCSI, device mapper, md RAID, and cgroup v2's I/O controller. Recorded system trees
  cover what halfpower reads of them.
- A real power failure. The FUSE file system loses, tears and misplaces writes instead.
- NFS, SMB and vfat. FUSE files without attributes and ext4 with times in seconds replace them.
- A pause of the whole virtual machine, `ptrace` stops, and the freezer of cgroup v2.
- A user's file with a plain number as its name inside a `halfpower-*.files` directory: it looks like halfpower's own.
- A writer that has mapped a file through the upper layer's own path of an overlay while halfpower keeps the file
  through the overlay.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    let count: usize = TABLE.iter().map(|section| section.rows.len()).sum();
    let _ = writeln!(page, "It has {count} kinds of fault.");
    for section in TABLE {
        let _ = write!(page, "\n## {}\n\n{}\n\n", section.title, wrapped(section.promise));
        page += "| fault | tried with | must end with | may change |\n|---|---|---|---|\n";
        for (_, row) in section.rows {
            let cells = [row.fault.to_owned(), commands(row), ends(row), names(row)]
                .map(|cell| cell.replace('|', "\\|"));
            let _ = writeln!(page, "| {} |", cells.join(" | "));
        }
    }
    page + TAIL
}

fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if line.len() + word.len() >= 120 {
            lines.push(word.into());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            *line += word;
        }
    }
    lines.join("\n")
}

fn lines(row: &Row) -> Vec<(&'static str, &'static str)> {
    let of = |step: &Step| match step {
        Step::Run(by, lines, _) => lines.iter().map(|line| (*line, by.words)).collect(),
        Step::Start(line)
        | Step::Together(_, line, _)
        | Step::Storm { line, .. }
        | Step::Stop { line, .. } => {
            vec![(*line, "")]
        }
        _ => Vec::new(),
    };
    row.steps.iter().flat_map(of).collect()
}

fn command(line: &str) -> &str {
    line.split(' ').next().filter(|word| !word.starts_with('{')).unwrap_or("any word")
}

fn commands(row: &Row) -> String {
    let mut reported = Vec::new();
    for (line, _) in lines(row) {
        let name = format!("`{}`", command(line));
        if !reported.contains(&name) {
            reported.push(name);
        }
    }
    let how: BTreeSet<&str> =
        lines(row).iter().map(|(_, by)| *by).filter(|by| !by.is_empty()).collect();
    let how: Vec<&str> = how.into_iter().collect();
    if how.is_empty() {
        reported.join(", ")
    } else {
        format!("{}, {}", reported.join(", "), how.join("; "))
    }
}

fn ends(row: &Row) -> String {
    let mut reported: Vec<String> = Vec::new();
    for step in row.steps {
        let one = match step {
            Step::Run(_, _, ends)
            | Step::Ended(ends)
            | Step::Together(_, _, ends)
            | Step::Stop { ends, .. } => said(ends),
            Step::Storm { signal: libc::SIGKILL, .. } => "a kill at any moment".into(),
            Step::Storm { .. } => "an interrupt at any moment".into(),
            Step::Fails(line) => format!("`{}` fails", command(line)),
            _ => continue,
        };
        if !reported.contains(&one) {
            reported.push(one);
        }
    }
    reported.join("; then ")
}

fn said(ends: &Ends) -> String {
    let words: Vec<String> =
        ends.words.iter().map(|word| format!("\"{}\"", word.replace('|', "\" or \""))).collect();
    let how = match ends.codes {
        _ if ends.failed_points => "failed points".to_owned(),
        [] => "a kill".into(),
        [0] => "success".into(),
        [2] => "a refusal".into(),
        [1] => "a failure".into(),
        [130] => "an interrupt".into(),
        codes => format!(
            "exit code {}",
            codes.iter().map(i32::to_string).collect::<Vec<_>>().join(" or ")
        ),
    };
    if words.is_empty() { how } else { format!("{how}: {}", words.join(", ")) }
}

fn names(row: &Row) -> String {
    if row.leaves.is_empty() {
        return "nothing".into();
    }
    row.leaves.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_stored_page_is_current() {
    let own = page();
    if std::env::var("UPDATE").as_deref() == Ok("1") {
        fs::write(KEPT, &own).unwrap();
    }
    let kept = fs::read_to_string(KEPT).unwrap_or_default();
    assert!(
        kept == own,
        "docs/reliability.md is out of date: UPDATE=1 cargo test -p halfpower --test faults page rewrites it"
    );
}

#[test]
fn the_table_has_sixty_kinds_and_every_command() {
    let count: usize = TABLE.iter().map(|section: &&Section| section.rows.len()).sum();
    assert!(count >= 60, "{count} kinds of fault");
    let all: BTreeSet<&str> = TABLE
        .iter()
        .flat_map(|section| section.rows)
        .flat_map(|(_, row)| lines(row))
        .map(|(line, _)| command(line))
        .collect();
    for name in [
        "run", "sweep", "study", "postmark", "iozone", "sqlio", "diskspd", "fio", "metadata",
        "verify", "report", "twin", "compare", "stack", "history", "check", "tune",
    ] {
        assert!(all.contains(name), "nothing is tried with {name}");
    }
}
