//! The fuzz targets for a bounded time: every parser on mutations of its corpus.

#[path = "../../../fuzz/src/lib.rs"]
mod parsers;

use parsers::PARSERS;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::fs;
use std::path::{Path, PathBuf};

const FUZZ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz");

const CASES: u32 = 500;

/// The number of cases for parsers that draw reports or write a file.
const SLOW_CASES: u32 = 50;

const WORDS: [&str; 16] = [
    "0",
    "-1",
    "18446744073709551615",
    "99999999999999999999",
    "1e308",
    "nan",
    "%",
    "=",
    ":",
    ",",
    "\n",
    "\0",
    "\u{1b}[2J",
    "\u{202e}",
    "\"",
    "/../",
];

/// Positions are modulo the length.
#[derive(Debug, Clone)]
enum Change {
    Flip(usize, u8),
    Insert(usize, usize),
    Remove(usize, usize),
    Repeat(usize, usize),
    Cut(usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = any::<usize>;
    let change = prop_oneof![
        (at(), 1u8..).prop_map(|(at, bits)| Change::Flip(at, bits)),
        (at(), 0..WORDS.len()).prop_map(|(at, word)| Change::Insert(at, word)),
        (at(), 1usize..40).prop_map(|(at, len)| Change::Remove(at, len)),
        (at(), 1usize..40).prop_map(|(at, len)| Change::Repeat(at, len)),
        at().prop_map(Change::Cut),
    ];
    proptest::collection::vec(change, 0..8)
}

fn changed(seed: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for change in changes {
        let place = |at: usize, bytes: &[u8]| at % (bytes.len() + 1);
        match *change {
            Change::Flip(at, bits) => {
                let at = place(at, &bytes);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= bits;
                }
            }
            Change::Insert(at, word) => {
                let at = place(at, &bytes);
                bytes.splice(at..at, WORDS[word].bytes());
            }
            Change::Remove(at, len) => {
                let at = place(at, &bytes);
                let end = (at + len).min(bytes.len());
                bytes.drain(at..end);
            }
            Change::Repeat(at, len) => {
                let at = place(at, &bytes);
                let part = bytes[at..(at + len).min(bytes.len())].to_vec();
                bytes.splice(at..at, part);
            }
            Change::Cut(at) => {
                let at = place(at, &bytes);
                bytes.truncate(at);
            }
        }
    }
    bytes
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(FUZZ).join("corpus").join(name);
    let mut files: Vec<PathBuf> = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.into_iter().map(|file| fs::read(file).unwrap()).collect()
}

fn try_all(only: impl Fn(&str) -> bool, cases: u32) {
    for (name, parser) in PARSERS.iter().filter(|(name, _)| only(name)) {
        let seeds = corpus(name);
        let understood = seeds.iter().filter(|seed| parser(seed)).count();
        assert!(
            2 * understood >= seeds.len().max(1),
            "{name} understands {understood} of the {} files of its corpus",
            seeds.len()
        );
        let mut runner =
            TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
        let tried = runner.run(&(proptest::sample::select(seeds), changes()), |(seed, changes)| {
            parser(&changed(&seed, &changes));
            Ok(())
        });
        tried.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

fn is_slow(name: &str) -> bool {
    ["results", "signature", "machine_file"].contains(&name)
}

#[test]
fn no_parser_panics() {
    try_all(|name| !is_slow(name), CASES);
}

#[test]
fn no_file_reader_panics() {
    try_all(is_slow, SLOW_CASES);
}

#[test]
fn every_parser_has_its_fuzz_target() {
    let manifest = fs::read_to_string(Path::new(FUZZ).join("Cargo.toml")).unwrap();
    for (name, _) in PARSERS {
        assert!(
            manifest.contains(&format!("name = \"{name}\"")),
            "fuzz/Cargo.toml has no target {name}"
        );
        assert!(
            Path::new(FUZZ).join(format!("fuzz_targets/{name}.rs")).exists(),
            "no fuzz_targets/{name}.rs"
        );
    }
}
