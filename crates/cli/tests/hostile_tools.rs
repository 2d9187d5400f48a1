//! Hostile input and outputs: a clear message, exit code 2 for what makes no sense and 1 for a run that fails, no file left, nothing printed raw.

mod common;

use common::places::Mount;
use common::{Ended, command, finish, test_files};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::Stdio;

fn run<S: AsRef<OsStr>>(directory: &Path, words: &[S]) -> Ended {
    let mut command = command(common::HALFPOWER, words);
    command.current_dir(directory);
    finish(command)
}

fn entries(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Refused with code 2 in one line of bearable length that names what is wrong, and nothing was made.
fn refused(directory: &Path, words: &[&str], why: &str) {
    let before = entries(directory);
    let ended = run(directory, words);
    let shown: Vec<String> = words.iter().map(|word| word.chars().take(40).collect()).collect();
    assert_eq!(ended.code, Some(2), "{shown:?}: {}", ended.stderr);
    assert!(ended.stderr.contains(why), "{shown:?}: {}", ended.stderr);
    assert!(ended.stderr.len() < 1500, "{shown:?}: a message of {} bytes", ended.stderr.len());
    assert_eq!(entries(directory), before, "{shown:?}");
}

#[test]
fn words_that_make_no_sense() {
    let here = tempfile::tempdir().unwrap();
    let long = "x".repeat(100_000);
    let digits = "9".repeat(50_000);
    let long_option = format!("-{}", "?".repeat(100_000));
    for tool in ["iozone", "sqlio", "diskspd"] {
        refused(here.path(), &[tool, &long_option], "-");
        refused(here.path(), &[tool, "--json"], "--json");
    }
    for words in [
        ["iozone", "-s", "-5"].as_slice(),
        &["iozone", "-s", digits.as_str()],
        &["iozone", "-r", "99999999999999999999g"],
        &["iozone", "-t", "-1"],
        &["iozone", "-i", "99999999999999999999"],
        &["iozone", "-s", "1x"],
        &["sqlio", "-t-3", "."],
        &["sqlio", "-b99999999999999999999", "."],
        &["sqlio", "-s0", "."],
        &["sqlio", "-kR", "--size", "-1", "."],
        &["diskspd", "-b-4K", "."],
        &["diskspd", "-c99999999999999999999T", "-d1", "."],
        &["diskspd", "-t0", "."],
        &["diskspd", "-w101", "."],
        &["fio", "--name=a", "--size=-1"],
        &["fio", "--name=a", "--size=99999999999999999999g"],
        &["fio", "--name=a", "--size=1m", "--numjobs=-1"],
        &["fio", "--name=a", "--size=1m", "--iodepth=18446744073709551616"],
        &["metadata", "--files", "-1"],
        &["metadata", "--files", "99999999999999999999"],
        &["metadata", "--file-bytes", "99999999999999999999"],
    ] {
        refused(here.path(), words, "");
    }
    let path = format!("/{long}/file");
    let far = "no/such/place/file";
    for words in [
        ["iozone", "-f", far, "-s", "64"].as_slice(),
        &["iozone", "-f", path.as_str(), "-s", "64"],
        &["sqlio", "-kR", "-frandom", "-s1", "--size", "1m", far],
        &["diskspd", "-d1", "-W0", far],
        &["diskspd", "-d1", "-W0", "-c1M", far],
        &["fio", "--name=a", "--size=1m", "--directory=no/such/place"],
        &["fio", far],
        &["metadata", far],
        &["report", far],
    ] {
        refused(here.path(), words, "");
    }
}

#[test]
fn locations_that_are_no_places_for_data() {
    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("mine"), vec![7; 100_000]).unwrap();
    // What was there is not overwritten, and a file is no directory.
    for (words, why) in [
        (["iozone", "-f", "mine", "-s", "64", "-i", "0"].as_slice(), "--destroy-data"),
        (&["sqlio", "-kW", "-frandom", "-s1", "-BY", "mine"], "--destroy-data"),
        (&["diskspd", "-d1", "-W0", "-w100", "mine"], "--destroy-data"),
        (&["fio", "--name=a", "--filename=mine", "--rw=write"], "--destroy-data"),
        (&["fio", "--name=a", "--size=1m", "--directory=mine"], ""),
        (&["fio", "--name=a", "--filename=.", "--size=1m"], "is a directory"),
        (&["fio", "--name=a", "--filename=/dev/null", "--size=1m"], "neither a file"),
        (&["metadata", "mine"], "not a directory"),
        (&["metadata", "--json", "mine/below"], ""),
    ] {
        refused(here.path(), words, why);
    }
    assert_eq!(fs::read(here.path().join("mine")).unwrap(), vec![7; 100_000]);
    fs::write(here.path().join("where.pmrc"), "set location mine\nset number 5\nset transactions 5\nrun\n").unwrap();
    let ended = run(here.path(), &["postmark", "where.pmrc"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("not a directory"), "{ended:?}");
    assert_eq!(entries(here.path()), ["mine", "where.pmrc"]);
}

#[test]
fn files_of_commands_that_hold_no_commands() {
    let here = tempfile::tempdir().unwrap();
    let long = format!("[a]\nsize=1m\ndescription={}\n", "y".repeat(1 << 20));
    for (name, bytes) in [
        ("nul", b"[a]\nsize=1m\0\nfilename=x\0y 4\n".to_vec()),
        ("noise", (0..50_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()),
        ("long", long.into_bytes()),
        ("empty", Vec::new()),
    ] {
        fs::write(here.path().join(name), bytes).unwrap();
        let parameters = format!("-F{name}");
        let profile = format!("-X{name}");
        refused(here.path(), &["fio", name], name.trim_start_matches("empty"));
        refused(here.path(), &["sqlio", "-kR", "-frandom", "-s1", &parameters], "");
        refused(here.path(), &["diskspd", &profile], "");
        refused(here.path(), &["report", name], "");
        // Lines that PostMark does not know are answered, and nothing runs.
        let ended = run(here.path(), &["postmark", name]);
        assert!(ended.code.is_some_and(|code| code == 0 || code == 2), "{name}: {:?}", ended.code);
        assert!(ended.stdout.len() + ended.stderr.len() < 1 << 20, "{name}");
        assert_eq!(entries(here.path()), [name]);
        fs::remove_file(here.path().join(name)).unwrap();
    }
}

#[test]
fn a_disk_that_fills() {
    let _one = common::alone();
    let small = or_skip!(Mount::tmpfs("8m"));
    let at = Path::new(small.name());
    for directory in ["a", "b"] {
        fs::create_dir(at.join(directory)).unwrap();
    }
    let left = || ["a", "b"].map(|name| entries(&at.join(name))).concat();
    // What cannot fit from the beginning makes no sense; what fails in the middle is a failed run.
    for (words, code) in [
        (["fio", "--name=x", "--size=64m", "--directory=a", "--rw=write"].as_slice(), 2),
        (&["fio", "--size=6m", "--rw=read", "--name=x", "--directory=a", "--name=y", "--directory=b"], 2),
        (
            &[
                "fio",
                "--size=6m",
                "--rw=write",
                "--fallocate=none",
                "--name=x",
                "--directory=a",
                "--name=y",
                "--directory=b",
            ],
            1,
        ),
        (&["diskspd", "-d1", "-W0", "-c64M", "a"], 2),
        (&["sqlio", "-kW", "-frandom", "-BY", "--runtime", "1", "--size", "64m", "a"], 2),
        (&["metadata", "a", "--files", "40", "--file-bytes", "1m", "--rounds", "1"], 1),
        (&["iozone", "-f", "a/file", "-s", "64m", "-r", "64k", "-i", "0"], 2),
    ] {
        let ended = run(at, words);
        assert_eq!(ended.code, Some(code), "{words:?}: {}", ended.stderr);
        let told = ended.stderr.to_lowercase();
        assert!(["space", "free", "room", "full"].iter().any(|word| told.contains(word)), "{words:?}: {told}");
        assert_eq!(left(), Vec::<String>::new(), "{words:?}");
        assert!(test_files(at).is_empty(), "{words:?}");
    }
    fs::write(at.join("full.pmrc"), "set location a\nset size 1000000\nset number 40\nset transactions 10\nrun\n")
        .unwrap();
    let ended = run(at, &["postmark", "full.pmrc"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("no space left"), "{ended:?}");
    assert_eq!(left(), Vec::<String>::new());
}

/// A name that would clear the screen, set the window's title and turn the writing direction.
const STEERING: &str = "a\u{1b}[2J\u{1b}]0;b\u{7}\u{202e}c\rd";

#[test]
fn names_cannot_steer_a_terminal() {
    let here = tempfile::tempdir().unwrap();
    fs::create_dir(here.path().join(STEERING)).unwrap();
    fs::write(here.path().join("pm"), format!("set location {STEERING}\nset {STEERING}\nshow\nquit\n")).unwrap();
    let option = format!("--{STEERING}");
    let named = format!("--name={STEERING}");
    let file = format!("{STEERING}/file");
    for words in [
        ["run", STEERING, "--size", "1m", "--bytes", "64k", "--repeats", "1"].as_slice(),
        &["sweep", STEERING, "--size", "1m", "--bytes", "64k", "--request", "4k,8k", "--repeats", "1"],
        &["run", &file],
        &["run", "--engine", STEERING],
        &["run", &option],
        &[STEERING],
        &["report", STEERING],
        &["verify", STEERING],
        &["metadata", STEERING, "--files", "4", "--rounds", "1"],
        &["metadata", &file],
        &["postmark", "pm"],
        &["twin", "show", STEERING],
        &["fio", &named, "--size=64k", "--rw=write"],
        &["fio", "--name=a", "--size=64k", "--rw=read", "--filename", &file],
        &["sqlio", "-kR", "--runtime", "20ms", &file],
        &["sqlio", "-kW", "-frandom", "-b4", "-BY", "--runtime", "20ms", "--size", "1m", STEERING],
        &["diskspd", "-d1", &file],
        &["iozone", "-s", "64", "-i", "0", "-f", &file],
    ] {
        let ended = run(here.path(), words);
        let raw = |text: &str| text.chars().find(|c| (c.is_control() && !"\n\t".contains(*c)) || *c == '\u{202e}');
        assert_eq!((raw(&ended.stdout), raw(&ended.stderr)), (None, None), "{words:?}: {ended:?}");
        assert!(!matches!(ended.code, None | Some(101)), "{words:?}: {ended:?}");
    }
}

#[test]
fn names_need_not_be_utf_8() {
    let here = tempfile::tempdir().unwrap();
    let name = OsString::from_vec(b"a\xff".to_vec());
    fs::create_dir(here.path().join(&name)).unwrap();
    let with = |words: &str| -> Vec<OsString> {
        words.split(' ').map(|word| if word == "NAME" { name.clone() } else { word.into() }).collect()
    };
    for words in ["run NAME --size 1m --bytes 64k --repeats 1 --json", "metadata NAME --files 4 --rounds 1 --json"] {
        run(here.path(), &with(words)).good_json();
    }
    for words in [
        "NAME",
        "report NAME",
        "verify NAME",
        "run --op NAME",
        "fio NAME",
        "sqlio NAME",
        "diskspd NAME",
        "iozone -f NAME",
    ] {
        let ended = run(here.path(), &with(words));
        assert!(matches!(ended.code, Some(1 | 2)), "{words}: {ended:?}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_a_command_quietly_and_a_full_disk_is_an_error() {
    let here = tempfile::tempdir().unwrap();
    for words in [
        "run . --size 1m --bytes 64k --repeats 1 --json",
        "run . --size 1m --bytes 64k --repeats 1",
        "metadata --files 4 --rounds 1",
        "twin list",
        "sqlio --help",
        "fio --help",
        "fio --name=a --rw=write --size=64k",
        "diskspd -c64K -d1 -W0 .",
        "sqlio -kW -frandom -b4 -BY --runtime 20ms --size 1m .",
        "iozone -s 64 -i 0",
        "postmark pm",
    ] {
        fs::write(here.path().join("pm"), "show\nquit\n").unwrap();
        let with = |out: Stdio| {
            let mut command = command(common::HALFPOWER, words.split(' '));
            command.current_dir(here.path()).stdout(out);
            finish(command)
        };
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = with(writer.into());
        // A warning about this computer is allowed: it does not come of the closed output.
        let quiet = ended.stderr.lines().all(|line| line.starts_with("halfpower: warning: "));
        assert!(ended.code == Some(0) && quiet, "{words}: {ended:?}");
        let ended = with(File::options().write(true).open("/dev/full").unwrap().into());
        assert!(ended.code == Some(1) && ended.stderr.contains("No space left"), "{words}: {ended:?}");
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut absent = command(common::HALFPOWER, ["run", "absent"]);
    absent.current_dir(here.path()).stderr(writer);
    assert_eq!(finish(absent).code, Some(2), "nobody reads the message");
}
