//! `postmark` and `metadata` from end to end: output, leftovers, exit codes.

use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const HALFPOWER: &str = env!("CARGO_BIN_EXE_halfpower");

fn missing(what: &str) {
    assert_ne!(std::env::var("HALFPOWER_REQUIRE").as_deref(), Ok("all"), "{what}");
    eprintln!("skipped: {what}");
}

fn program<S: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: &[S],
    directory: &Path,
    input: &[u8],
) -> Output {
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env("HOME", directory)
        .env_remove("XDG_STATE_HOME")
        .env("HALFPOWER_HISTORY", "none")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // A program may end before it has read everything.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap()
    })
}

fn halfpower(arguments: &[&str], directory: &Path, input: &[u8]) -> Output {
    program(HALFPOWER, arguments, directory, input)
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn normalised(text: &str) -> String {
    let mut kept = Vec::new();
    let mut ours = false;
    for line in text.lines() {
        if line == "Halfpower:" {
            ours = true;
            // The empty line before it is also ours.
            kept.pop();
        }
        ours &= line.is_empty() || line == "Halfpower:" || line.starts_with('\t');
        if ours {
            continue;
        }
        let fields: Vec<&str> = line.split(' ').collect();
        kept.push(match (line.find(" seconds "), line.find('(')) {
            _ if fields.len() == 13 && fields.iter().all(|field| field.parse::<f64>().is_ok()) => {
                "13 numbers".into()
            }
            (Some(at), Some(rate)) => format!("\t_{} _", &line[at..rate]),
            (Some(at), None) => format!("\t_{}", &line[at..]),
            (None, Some(rate)) if line.ends_with("per second)") => format!("{}_", &line[..rate]),
            _ => line.to_string(),
        });
    }
    kept.join("\n")
}

fn assert_beside_debian(files: &[(&str, &str)], arguments: &[&str], input: &[u8]) {
    let Some(original) = ["/usr/bin/postmark", "/usr/games/postmark"]
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists())
    else {
        return missing("postmark is not installed: apt-get install postmark");
    };
    let texts = [original.as_os_str(), OsStr::new(HALFPOWER)].map(|name| {
        let directory = tempfile::tempdir().unwrap();
        for (file, text) in files {
            fs::write(directory.path().join(file), text).unwrap();
        }
        let command = (name == HALFPOWER).then_some("postmark");
        let arguments: Vec<&str> = command.into_iter().chain(arguments.iter().copied()).collect();
        let output = program(name, &arguments, directory.path(), input);
        let mut left: Vec<&str> = files.iter().map(|(file, _)| *file).collect();
        left.sort_unstable();
        assert_eq!(names(directory.path()), left, "{} left files", name.display());
        out(&output).replace(&directory.path().display().to_string(), "HERE")
    });
    let [theirs, ours] = texts.map(|text| (normalised(&text), text.ends_with('\n')));
    assert_eq!(ours, theirs, "{arguments:?} {:?}", String::from_utf8_lossy(input));
}

#[test]
fn a_piped_session_matches_the_original() {
    assert_beside_debian(&[], &[], b"");
    assert_beside_debian(&[], &[], b"run\nset report terse\nrun\nshow\nquit\nshow\n");
    assert_beside_debian(
        &[],
        &[],
        b"set number 0\nset nothing\n\nshow\nset subdirectories 4\nrun\nexit\n",
    );
    // Both report the error and print no report.
    assert_beside_debian(
        &[],
        &[],
        b"set number 5\nset transactions 3000\nset bias create 0\nrun\nquit\n",
    );
}

#[test]
fn a_file_of_commands_matches_the_original() {
    let runs = (
        "commands",
        "set number 100\nset transactions 300\nset size 1000 3000\nrun\nset report terse\nrun\nexit\n?\n",
    );
    let quits = ("quits", "set seed 7\nrun\nquit\nrun\n");
    assert_beside_debian(&[runs], &["commands"], b"");
    assert_beside_debian(&[runs], &["commands"], b"show\nload commands\n");
    assert_beside_debian(&[quits], &["quits"], b"show\n");
    assert_beside_debian(&[], &["nowhere"], b"show\nquit\n");
    let start = (".pmrc", "set number 77\n");
    assert_beside_debian(&[start], &[], b"show\n");
    assert_beside_debian(&[start, runs], &["commands"], b"show\n");
}

#[test]
fn the_default_run_without_the_original() {
    let here = tempfile::tempdir().unwrap();
    let output = halfpower(&["postmark"], here.path(), b"run\n");
    assert_eq!(output.status.code(), Some(0));
    let text = normalised(&out(&output));
    for line in [
        "PostMark v1.51 : 8/14/01",
        "\t764 created _",
        "\t243 read _",
        "\t257 appended _",
        "\t764 deleted _",
        "\t1.36 megabytes read _",
    ] {
        assert!(text.lines().any(|found| found == line), "{line:?} is not in\n{text}");
    }
    assert!(text.ends_with("\npm>"), "the last line is only the prompt: {text}");
}

#[test]
fn the_documents_hold_every_complete_run() {
    let here = tempfile::tempdir().unwrap();
    let second = here.path().join("second");
    fs::create_dir(&second).unwrap();
    let session = format!(
        "run\nset location {}\nset threads 2\nset sync file\nset number 40\nset transactions 60\nrun\nset location /nowhere\nrun\n",
        second.display()
    );
    let output = halfpower(&["postmark", "--json", "r.json"], here.path(), session.as_bytes());
    assert_eq!(output.status.code(), Some(2), "the last run was refused: no such place");
    assert_eq!(names(here.path()), ["r.json", "second"]);
    let text = fs::read_to_string(here.path().join("r.json")).unwrap();
    let results: results::Results = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (results.kind, results.target.kind),
        (results::Kind::Postmark, machine::TargetKind::Directory)
    );
    assert_eq!(results.target.name, format!("., {}", second.display()));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["postmark"]["schema"], "halfpower.postmark/1");
    let runs: Vec<dialect::postmark::PostmarkResult> =
        serde_json::from_value(document["postmark"]["runs"].clone()).unwrap();
    assert_eq!(
        runs.iter().map(|run| (run.threads, run.counts.created())).collect::<Vec<_>>()[0],
        (1, 764)
    );
    assert_eq!((runs.len(), runs[1].threads, runs[1].sync), (2, 2, machine::files::FileSync::File));
    let rates: Vec<_> =
        results.rates.iter().filter(|rate| rate.operation == "transaction").collect();
    let settings = format!(
        "set location {} 1; set number 40; set transactions 60; set threads 2; set sync file",
        second.display()
    );
    assert_eq!(
        rates.iter().map(|rate| (rate.settings.as_str(), rate.count)).collect::<Vec<_>>(),
        [("", 500), (&*settings, 60)]
    );
    for (rate, run) in rates.iter().zip(&runs) {
        assert_eq!(rate.per_s, run.rates.transactions_per_s);
    }
    let created: Vec<_> = results.rates.iter().filter(|rate| rate.operation == "create").collect();
    assert_eq!(created[0].latency_ns.as_ref().unwrap().count, created[0].count);
    assert_eq!(results::read(&here.path().join("r.json")).unwrap(), results);
}

#[test]
fn unwritable_json_is_reported_before_the_first_run() {
    let here = tempfile::tempdir().unwrap();
    for (file, words) in [(".", "it is a directory"), ("none/r.json", "make it first")] {
        let output = halfpower(&["postmark", "--json", file], here.path(), b"run\n");
        assert_eq!((output.status.code(), out(&output).as_str()), (Some(2), ""));
        assert!(err(&output).contains(words), "{}", err(&output));
    }
    let output = halfpower(&["postmark", "--json", "r.json"], here.path(), b"show\n");
    assert!(
        err(&output).contains("r.json was not written: no run was completed"),
        "{}",
        err(&output)
    );
    assert!(names(here.path()).is_empty());
}

#[test]
fn exit_codes_distinguish_refusals_and_failures() {
    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("plain"), "").unwrap();
    for (input, code, words) in [
        ("show\n# a comment\n\nquit\n", 0, ""),
        ("sho\n", 2, ""),
        ("set number -1\nrun\n", 2, "invalid number of files"),
        ("set size 99999999999999999999\n", 2, "write one or two numbers from 1 to 2147483647"),
        ("set threads 1000000\n", 2, "invalid number of threads"),
        (
            "set location nowhere\nrun\n",
            2,
            "the location 'nowhere' does not exist: make the directory first",
        ),
        ("set location plain\nrun\n", 2, "the location 'plain' is not a directory"),
        ("set number 1\nset transactions 1000\nset bias create 0\nrun\n", 1, ""),
        ("load nowhere\n", 2, "cannot read configuration file 'nowhere'"),
        ("!ls\n", 2, "'!' starts no shell here"),
        ("sho\nset location plain\nrun\n", 2, "is not a directory"),
    ] {
        let output = halfpower(&["postmark"], here.path(), input.as_bytes());
        assert_eq!(output.status.code(), Some(code), "{input:?}: {}", err(&output));
        assert!(err(&output).contains(words), "{input:?}: {}", err(&output));
        assert!(code != 1 || !out(&output).contains("Time:"), "a failed run has no report");
    }
    assert_eq!(names(here.path()), ["plain"]);
    let output = halfpower(&["postmark", "nowhere"], here.path(), b"show\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        err(&output).contains("Error: cannot read configuration file 'nowhere': No such file"),
        "{}",
        err(&output)
    );
    for arguments in
        [&["postmark", "a", "b"][..], &["postmark", "--nothing"], &["metadata", "--files", "-1"]]
    {
        assert_eq!(halfpower(arguments, here.path(), b"").status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn hostile_lines_are_harmless() {
    let here = tempfile::tempdir().unwrap();
    let mut input = b"set location ".to_vec();
    input.extend(vec![b'x'; 1 << 20]);
    input.extend(b"\nset location a\0b\nrun\0file\nshow\0\n\xff\xfe\nset seed 3\nshow\n");
    input.extend(vec![b'y'; 1 << 20]);
    let output = halfpower(&["postmark"], here.path(), &input);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(
        out(&output).contains("Random number generator seed is 3"),
        "a line after the long one is obeyed"
    );
    assert!(
        !out(&output).contains("Time:") && names(here.path()).is_empty(),
        "{:?}",
        names(here.path())
    );
    assert!(err(&output).lines().all(|line| line.len() < 400), "a message repeats no megabyte");
    // The same from a file of commands, and from an endless file.
    fs::write(here.path().join("commands"), &input).unwrap();
    let output = halfpower(&["postmark", "commands"], here.path(), b"");
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    let output = halfpower(&["postmark", "/dev/zero"], here.path(), b"");
    assert!(err(&output).contains("it is a device; name a regular file"), "{}", err(&output));
    assert_eq!(names(here.path()), ["commands"]);
}

struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Small> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "none"])
            .arg(directory.path())
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Small(directory));
        }
        missing("mounting a small file system needs root");
        None
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

#[test]
fn a_disk_fills_up_during_a_run() {
    let Some(small) = Small::mount() else { return };
    let here = small.0.path();
    let output = halfpower(&["postmark"], here, b"run\nset number 10\nset transactions 20\nrun\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).starts_with("Error: no space left to create './halfpower-"),
        "{}",
        err(&output)
    );
    assert_eq!(out(&output).matches("Time:").count(), 1, "the run after it is a good one");
    let output = halfpower(
        &["metadata", "--files", "1000", "--file-bytes", "64k", "--rounds", "1"],
        here,
        b"",
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).contains("halfpower: no space left to create './halfpower-"),
        "{}",
        err(&output)
    );
    assert!(names(here).is_empty(), "{:?}", names(here));
}

fn interrupted(
    arguments: &[&str],
    directory: &Path,
    input: &[u8],
    signal: &str,
) -> (Option<i32>, String) {
    let mut child = Command::new(HALFPOWER)
        .env("HALFPOWER_HISTORY", "none")
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while names(directory).iter().all(|name| {
        fs::read_dir(directory.join(name)).is_ok_and(|mut files| files.next().is_none())
    }) {
        assert!(Instant::now() < deadline, "nothing was started in a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success()
    );
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    // Standard input stays open until here, so end of input did not end the program.
    let code = child.wait().unwrap().code();
    drop(stdin);
    (code, said)
}

#[test]
fn an_interrupt_removes_the_files_and_ends_the_program() {
    for signal in ["-INT", "-TERM"] {
        let here = tempfile::tempdir().unwrap();
        let long = b"set subdirectories 3\nset transactions 2000000000\nrun\nrun\n";
        let (code, said) = interrupted(&["postmark"], here.path(), long, signal);
        assert!(
            code == Some(130) && said.contains("interrupted; the files of the run were removed"),
            "{code:?} {said}"
        );
        assert!(names(here.path()).is_empty(), "{:?}", names(here.path()));
        let (code, said) =
            interrupted(&["metadata", "--files", "1000000000"], here.path(), b"", signal);
        assert!(code == Some(130) && said.contains("halfpower: interrupted"), "{code:?} {said}");
        assert!(names(here.path()).is_empty(), "{:?}", names(here.path()));
    }
}

#[test]
fn the_next_run_removes_what_a_killed_one_left() {
    for next in [&["postmark"][..], &["metadata", "--files", "20", "--rounds", "1"]] {
        let here = tempfile::tempdir().unwrap();
        let (code, _) =
            interrupted(&["metadata", "--files", "1000000000"], here.path(), b"", "-KILL");
        assert_eq!((code, names(here.path()).len()), (None, 1));
        let output = halfpower(next, here.path(), b"set number 5\nset transactions 5\nrun\n");
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert!(names(here.path()).is_empty(), "{:?}", names(here.path()));
        assert!(
            next[0] == "postmark"
                || err(&output).contains("removed a directory that a killed run left in ."),
            "{}",
            err(&output)
        );
    }
}

#[test]
fn a_signal_at_the_prompt_ends_the_program() {
    let here = tempfile::tempdir().unwrap();
    let mut child = Command::new(HALFPOWER)
        .env("HALFPOWER_HISTORY", "none")
        .arg("postmark")
        .current_dir(here.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut text = Vec::new();
    while !text.ends_with(b"pm>") {
        let mut byte = [0];
        assert_eq!(stdout.read(&mut byte).unwrap(), 1, "it ended too early");
        text.push(byte[0]);
    }
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn metadata_in_the_current_directory() {
    let here = tempfile::tempdir().unwrap();
    let output = halfpower(
        &["metadata", "--files", "50", "--threads", "2", "--rounds", "2", "--sync", "all"],
        here.path(),
        b"",
    );
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    assert!(
        text.starts_with("50 files of 0 bytes over 10 directories by 2 threads, 2 rounds, engine syscalls, sync all\n"),
        "{text}"
    );
    let rows: Vec<&str> =
        text.lines().skip(2).take(6).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(rows, ["create", "stat", "open", "rename", "list", "delete"]);
    let arguments = [
        "metadata",
        ".",
        "--files",
        "3",
        "--rounds",
        "1",
        "--file-bytes",
        "1k",
        "--engine",
        "stdio",
        "--seed",
        "9",
        "--json",
    ];
    let output = halfpower(&arguments, here.path(), b"");
    let results: results::Results = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((results.kind, results.seed, results.rates.len()), (results::Kind::Metadata, 9, 7));
    assert_eq!(
        results.rates[0].settings,
        "--files 3 --directories 3 --threads 1 --file-bytes 1024 --engine stdio --seed 9"
    );
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["metadata"]["schema"], "halfpower.metadata/1");
    let own: results::MetadataResult =
        serde_json::from_value(document["metadata"].clone()).unwrap();
    assert_eq!((own.plan.file_bytes, own.operations[0].count), (1024, 3));
    assert!(names(here.path()).is_empty());
}

#[test]
fn metadata_on_a_simulated_machine() {
    let here = tempfile::tempdir().unwrap();
    let of = |place: &str| {
        let words = ["metadata", place, "--files", "200", "--rounds", "2", "--json"];
        let output = halfpower(&words, here.path(), b"");
        assert_eq!(output.status.code(), Some(0), "{place}: {}", err(&output));
        serde_json::from_slice::<results::Results>(&output.stdout).unwrap()
    };
    let (disk, cached) = (of("twin:laptop-xp"), of("twin:laptop-xp,ramcache=256m"));
    assert_eq!((disk.kind, disk.rates.len()), (results::Kind::Metadata, 6));
    assert!(disk.warnings[0].contains("simulated"), "{:?}", disk.warnings);
    assert!(disk.target.name.contains("laptop-xp"), "{}", disk.target.name);
    assert!(disk.elapsed_ns > 0, "virtual time");
    assert!(disk.rates.iter().zip(&cached.rates).any(|(disk, cached)| disk.per_s != cached.per_s));
    for (place, words) in [
        ("twin:laptop-xp#f", "leave out what follows '#'"),
        ("twin:nas,clients=2#f", "leave out what follows '#'"),
        ("twin:nowhere", "nowhere"),
    ] {
        let output = halfpower(&["metadata", place], here.path(), b"");
        assert_eq!(output.status.code(), Some(2), "{place}: {}", err(&output));
        assert!(err(&output).contains(words), "{place}: {}", err(&output));
    }
    assert!(names(here.path()).is_empty());
}

/// Uses a server on which a look takes one of 8 threads 60 us, a change 540 us; the path there and
/// back takes some 128 us, and a client 3 us for a request.
#[test]
fn metadata_by_the_clients_of_a_simulated_server() {
    let here = tempfile::tempdir().unwrap();
    let of = |place: &str, options: &[&str]| {
        let words = ["metadata", place, "--files", "400", "--rounds", "1", "--clients", "powers"];
        let output = halfpower(&[&words, options, &["--json"]].concat(), here.path(), b"");
        assert_eq!(output.status.code(), Some(0), "{place}: {}", err(&output));
        serde_json::from_slice::<results::Results>(&output.stdout).unwrap()
    };
    let rate = |document: &results::Results, operation: &str, clients: usize| {
        let scalings = &document.operation_scaling;
        let one = scalings.iter().find(|one| one.operation == operation).unwrap();
        let step = one.steps.iter().find(|step| step.clients as usize == clients);
        step.unwrap_or_else(|| panic!("{operation} by {clients}")).per_s
    };
    let near = |rate: f64, expected: f64| {
        assert!((rate / expected - 1.0).abs() < 0.06, "{rate} where {expected} is right");
    };
    let own = of("twin:nas,clients=32", &[]);
    assert!(own.warnings[0].contains("simulated"), "{:?}", own.warnings);
    near(rate(&own, "create", 1), 1e6 / 671.0);
    near(rate(&own, "create", 32), 8e6 / 540.0);
    near(rate(&own, "open", 1), 1e6 / 191.0);
    // Its own cache knows the attributes.
    near(rate(&own, "stat", 1), 1e6 / 0.8);
    let create = own.operation_scaling.iter().find(|one| one.operation == "create").unwrap();
    assert_eq!(create.growth.half_power_clients, 8);
    assert_eq!(create.growth.limit, results::ScalingLimit::Server, "{create:?}");
    // Another client's cache does not.
    let others = of("twin:nas,clients=32", &["--shift", "1", "--file-bytes", "4k"]);
    near(rate(&others, "stat", 2), 2e6 / 191.0);
    assert!(rate(&others, "read", 32) < 8e6 / 60.0);
    // Changes of one directory follow one another, each 40 us.
    let machine = here.path().join("server.toml");
    let text = "name = \"server\"\nbase = \"nas\"\n[drives.share]\nworkers = 64\nstable_us = 0\n";
    fs::write(&machine, text).unwrap();
    let place = format!("twin:{},clients=16", machine.display());
    near(rate(&of(&place, &["--shared-directory"]), "create", 16), 1e6 / 40.0);
    assert!(rate(&of(&place, &[]), "create", 16) > 3e6 / 40.0);
    // The same again: virtual time depends on nothing else.
    assert_eq!(of("twin:nas,clients=32", &[]).operation_scaling, own.operation_scaling);
    let output = halfpower(&["metadata", "twin:nas,clients=2", "--clients", "4"], here.path(), b"");
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("there are only 2"), "{}", err(&output));
    // A study has them as well.
    let words = ["study", "twin:nas,clients=4", "--quick", "--json", "--output", "out"];
    let output = halfpower(&words, here.path(), b"");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let study: results::Results = serde_json::from_slice(&output.stdout).unwrap();
    assert!(study.points.iter().all(|point| point.error.is_none()), "regions have room for all");
    let tree = study.operation_scaling.iter().filter(|one| one.files.contains("a tree of 31"));
    let steps: Vec<Vec<u32>> =
        tree.map(|one| one.steps.iter().map(|step| step.clients).collect()).collect();
    assert_eq!(steps, vec![vec![1, 2, 4]; 6]);
    assert_eq!(names(here.path()), ["out", "server.toml"]);
}

#[test]
fn metadata_that_cannot_be_measured() {
    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("plain"), "").unwrap();
    for (arguments, words) in [
        (&["nowhere"][..], "'nowhere' does not exist: make the directory first"),
        (&["plain"], "'plain' is not a directory"),
        (&["--files", "0"], "the number of files is 0: it must be from 1"),
        (
            &["--files", "5", "--directories", "6"],
            "the number of directories is 6: it must be from 1 to 5",
        ),
        (
            &["--directories", "9", "--branch", "1"],
            "the number of directories below each is 1: it must be from 2",
        ),
        (&["--file-bytes", "8g"], "at most 1m"),
        (&["--sync", "some"], "possible values: none, file, all"),
    ] {
        let output = halfpower(&[&["metadata"], arguments].concat(), here.path(), b"");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", err(&output));
        assert!(err(&output).contains(words), "{arguments:?}: {}", err(&output));
    }
    assert_eq!(names(here.path()), ["plain"]);
}

#[test]
fn a_session_at_a_terminal() {
    if Command::new("script").arg("--version").output().is_err() {
        return missing("script is not installed: apt-get install bsdutils");
    }
    let here = tempfile::tempdir().unwrap();
    // Without `exec` a shell such as dash handles the interrupt itself and ends with 130.
    let command = format!("exec {HALFPOWER} postmark");
    let mut child = Command::new("timeout")
        .args(["--foreground", "300", "script", "-qec", &command, "/dev/null"])
        .current_dir(here.path())
        .env("HOME", here.path())
        .env("TERM", "xterm")
        .env_remove("XDG_STATE_HOME")
        .env("HALFPOWER_HISTORY", "none")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = child.stdin.take().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let mut seen = String::new();
    // Waits until the screen shows this text, after all previously awaited text.
    let mut wait_for = |wanted: &str| {
        let mut bytes = Vec::new();
        while !bytes.ends_with(wanted.as_bytes()) {
            let mut byte = [0];
            assert_eq!(
                screen.read(&mut byte).unwrap(),
                1,
                "it ended before {wanted:?}: {seen}{}",
                String::from_utf8_lossy(&bytes)
            );
            bytes.push(byte[0]);
        }
        seen.push_str(&String::from_utf8_lossy(&bytes));
    };
    // The editor reads keys only after it has switched the terminal mode and shown the prompt.
    let mut at_prompt = |typed: &str, then: &[(&str, &str)]| {
        wait_for("\x1b[?2004h");
        wait_for("pm>");
        keys.write_all(typed.as_bytes()).unwrap();
        for (shown, typed) in then {
            wait_for(shown);
            keys.write_all(typed.as_bytes()).unwrap();
        }
    };
    at_prompt("set seed 45\x7f\r", &[]);
    at_prompt("xyz\x03", &[]);
    at_prompt("set transactions 2000000000\r", &[]);
    at_prompt(
        "run\r",
        &[("Performing transactions", "\x03"), ("the files of the run were removed", "")],
    );
    // Two lines up in the history is the line before `run`; delete its last zeros.
    at_prompt("\x1b[A\x1b[A\x7f\x7f\x7f\x7f\x7f\x7f\x7f\r", &[]);
    at_prompt("show\r", &[("Transactions: 200\r\n", ""), ("generator seed is 4\r\n", "")]);
    at_prompt("\x04", &[]);
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(1), "the session goes on to its end, in which a run had failed");
    let history =
        fs::read_to_string(here.path().join(".local/state/halfpower/postmark_history")).unwrap();
    assert!(
        history.contains("set seed 4\n")
            && history.contains("set transactions 200\n")
            && !history.contains("xyz"),
        "{history}"
    );
    assert_eq!(names(here.path()), [".local"]);
}

/// Checks the times published for a server of 2003: 386 s, and 196 s with a RAM cache of 256 MB.
#[test]
fn the_published_laptop_gains_as_published_from_a_ram_cache() {
    let here = tempfile::tempdir().unwrap();
    let run = |machine: &str| -> f64 {
        let commands = "set number 10000\nset transactions 20000\nset subdirectories 5\nset size 500 100000\nset read 4096\nset write 4096";
        fs::write(
            here.path().join("run.pm"),
            format!("set location {machine}\n{commands}\nrun\nquit\n"),
        )
        .unwrap();
        let done = halfpower(&["postmark", "run.pm", "--json", "run.json"], here.path(), b"");
        assert!(done.status.success(), "{}", err(&done));
        let text = out(&done);
        for published in [
            "20092 created",
            "9935 read",
            "10064 appended",
            "548.25 megabytes read",
            "1158.00 megabytes written",
        ] {
            assert!(text.contains(published), "{published}: {text}");
        }
        assert!(text.contains("simulated"), "{text}");
        let document: Value =
            serde_json::from_slice(&fs::read(here.path().join("run.json")).unwrap()).unwrap();
        assert_eq!(
            (&document["machine"]["simulated"], &document["target"]["kind"]),
            (&Value::Bool(true), &"simulated".into())
        );
        document["postmark"]["runs"][0]["phases"]["total_ns"].as_f64().unwrap() * 1e-9
    };
    let (without, with) = (run("twin:laptop-xp"), run("twin:laptop-xp,ramcache=256m"));
    assert_eq!(run("twin:laptop-xp"), without, "the same on every run");
    assert!((1.6..2.4).contains(&(without / with)), "{without} s without, {with} s with");
    // The published disk may differ.
    assert!((250.0..600.0).contains(&without), "{without} s");
    assert_eq!(names(here.path()), ["run.json", "run.pm"]);
}

/// A benchmark of a fixed amount of work has one answer: its time.
#[test]
fn two_reports_are_compared_by_their_time() {
    let here = tempfile::tempdir().unwrap();
    let run = |name: &str, machine: &str| {
        let commands =
            format!("set location {machine}\nset number 20000\nset transactions 50000\n");
        fs::write(here.path().join("run.pm"), format!("{commands}run\nquit\n")).unwrap();
        let json = format!("{name}.json");
        let done = halfpower(&["postmark", "run.pm", "--json", &json], here.path(), b"");
        assert!(done.status.success(), "{}", err(&done));
        fs::write(here.path().join(format!("{name}.txt")), out(&done)).unwrap();
    };
    run("a", "twin:server-2003");
    run("b", "twin:server-2003,ramcache=256m");
    for (kind, from) in [("txt", "from single runs"), ("json", "exactly")] {
        let (a, b) = (format!("a.{kind}"), format!("b.{kind}"));
        let done = halfpower(&["compare", &a, &b, "--json", "--no-history"], here.path(), b"");
        assert!(done.status.success(), "{}", err(&done));
        let compared: Value = serde_json::from_str(&out(&done)).unwrap();
        let all = compared["differences"].as_array().unwrap();
        let time = all.iter().find(|one| one["measure"] == "duration").unwrap();
        let times = ["a", "b"].map(|side| time[side].as_f64().unwrap());
        assert!(times[1] < times[0] && times[0] > 1e9, "{times:?}");
        let sentences: Vec<&str> =
            compared["sentences"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(sentences[0].contains(" in total, ") && sentences[0].contains(from));
        let mean = sentences.iter().any(|one| one.contains("mean over"));
        assert!(!mean, "no second answer: {sentences:?}");
    }
}
