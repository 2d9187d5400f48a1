//! Outputs: nothing of the user's is overwritten, devices stay devices, and results are never lost to an output.

mod common;

use common::{HALFPOWER, command, halfpower};
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const PRECIOUS: &str = "a user's own words";

/// A short run of each command that writes a document, on a file of its own, with `json` as the document's name.
fn commands(here: &Path, json: &str) -> Vec<String> {
    let data = |name: &str| here.join(name).display().to_string();
    let postmark = here.join("commands");
    let location = here.join("files");
    fs::create_dir_all(&location).unwrap();
    let lines = format!("set location {}\nset number 20\nset transactions 20\nrun\nquit\n", location.display());
    fs::write(&postmark, lines).unwrap();
    let twin = "twin:gateway-1997";
    vec![
        format!("fio --name=a --filename={twin} --rw=read --size=1m --json={json}"),
        format!("fio --name=a --filename={twin} --rw=read --size=1m --output={json} --output-format=json"),
        format!("iozone -i 0 -r 64k -s 256k -f {} --json {json}", data("iozone")),
        format!("diskspd -d1 -W0 -b64K --json {json} {twin}"),
        format!("sqlio -kR -s1 -b64 --json {json} {twin}"),
        format!("postmark {} --json {json}", postmark.display()),
    ]
}

/// What lies in a directory that a run should have left as it was.
fn parts(directory: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.to_string_lossy().ends_with(".part")).collect()
}

#[test]
fn a_file_of_the_users_is_refused_by_every_command_and_force_replaces_it() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    let json = here.path().join("precious");
    for arguments in commands(here.path(), &json.display().to_string()) {
        fs::write(&json, PRECIOUS).unwrap();
        let ended = halfpower(&arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains("precious") && ended.stderr.contains("--force"), "{arguments:?}: {ended:?}");
        assert_eq!(fs::read_to_string(&json).unwrap(), PRECIOUS, "{arguments:?}");
        for again in ["replaced by force", "replaced because it is ours"] {
            let forced = match again {
                "replaced by force" => arguments.replacen(' ', " --force ", 1),
                _ => arguments.clone(),
            };
            let ended = halfpower(&forced);
            assert_eq!(ended.code, Some(0), "{again}: {forced:?}: {ended:?}");
            let text = fs::read_to_string(&json).unwrap();
            assert!(text.starts_with('{') && text.contains("halfpower"), "{again}: {forced:?}: {text}");
        }
    }
    assert_eq!(parts(here.path()), Vec::<PathBuf>::new());
}

#[test]
fn devices_and_pipes_are_written_into_and_stay() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    for arguments in commands(here.path(), "/dev/null") {
        let ended = halfpower(&arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
        assert!(fs::symlink_metadata("/dev/null").unwrap().file_type().is_char_device(), "{arguments:?}");
    }
    let json = halfpower(
        "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --output=/dev/null --json=/dev/stdout",
    );
    assert_eq!(json.good_json()["schema"], "halfpower.results/1");
    let pipe = here.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    let ended = halfpower(&commands(here.path(), &pipe.display().to_string())[0]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(reader.join().unwrap().contains("halfpower.results/1"));
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn a_full_device_is_an_error_and_the_document_is_kept_elsewhere() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    for arguments in commands(here.path(), "/dev/full") {
        let temporary = here.path().join("temporary");
        fs::create_dir_all(&temporary).unwrap();
        let ended = common::ended(command(HALFPOWER, arguments.split(' ')).env("TMPDIR", &temporary).spawn().unwrap());
        assert_eq!(ended.code, Some(1), "{arguments:?}: {ended:?}");
        let kept: Vec<PathBuf> = fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(kept.len(), 1, "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(&kept[0].display().to_string()), "{arguments:?}: {ended:?}");
        assert!(fs::read_to_string(&kept[0]).unwrap().contains("halfpower"), "{arguments:?}");
        assert!(arguments.contains("--output=") || !ended.stdout.is_empty(), "{ended:?}");
        fs::remove_dir_all(&temporary).unwrap();
    }
}

#[test]
fn what_is_measured_is_no_output_even_by_force() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    let (target, link) = (here.path().join("data"), here.path().join("link"));
    fs::write(&target, vec![7u8; 1 << 20]).unwrap();
    fs::hard_link(&target, &link).unwrap();
    let target = target.display();
    for json in [target.to_string(), link.display().to_string()] {
        let lines = [
            format!("fio --force --name=a --filename={target} --rw=read --json={json}"),
            format!("iozone --force -i 1 -r 64k -s 1m -f {target} --json {json}"),
            format!("diskspd --force -d1 -W0 -b64K --json {json} {target}"),
            format!("sqlio --force -kR -s1 -b64 --json {json} {target}"),
        ];
        for line in lines {
            let ended = halfpower(&line);
            assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
            assert!(ended.stderr.contains("what is measured"), "{line}: {ended:?}");
            assert_eq!(fs::read(&link).unwrap(), vec![7u8; 1 << 20], "{line}");
        }
    }
}

#[test]
fn a_study_follows_no_link_and_tries_its_place_first() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    let (out, precious) = (here.path().join("out"), here.path().join("precious"));
    fs::create_dir(&out).unwrap();
    fs::write(&precious, PRECIOUS).unwrap();
    let study = || halfpower(&format!("study twin:gateway-1997 --quick --only memory --output {}", out.display()));
    for name in ["report.html", "results.json", "points.csv"] {
        symlink(&precious, out.join(name)).unwrap();
        study().refused(&[name, "symbolic link"]);
        fs::remove_file(out.join(name)).unwrap();
        fs::write(out.join(name), PRECIOUS).unwrap();
        study().refused(&[name, "--force"]);
        fs::remove_file(out.join(name)).unwrap();
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), PRECIOUS);
    for _ in 0..2 {
        let ended = study();
        assert_eq!(ended.code, Some(0), "a second study replaces what the first one left: {ended:?}");
    }
    fs::remove_dir_all(&out).unwrap();
    fs::write(&out, PRECIOUS).unwrap();
    study().refused(&["--output", "directory"]);
}

#[test]
fn standard_output_that_is_closed_ends_quietly_and_one_that_is_full_is_an_error() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    let lines = [
        "run twin:gateway-1997 --runtime 10ms --json",
        "run twin:gateway-1997 --runtime 10ms",
        "sweep twin:gateway-1997 --runtime 10ms --request 4k,64k --json",
        "twin list",
        "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m",
        "fio --help",
        "diskspd --help",
    ];
    let metadata = format!("metadata {} --files 10 --json", here.path().display());
    for line in lines.into_iter().chain([metadata.as_str()]) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = common::ended(command(HALFPOWER, line.split(' ')).stdout(writer).spawn().unwrap());
        assert_eq!((ended.code, ended.stderr.contains("panicked")), (Some(0), false), "{line}: {ended:?}");
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended = common::ended(command(HALFPOWER, line.split(' ')).stdout(full).spawn().unwrap());
        assert!(!ended.stderr.contains("panicked"), "{line}: {ended:?}");
        let is_help = line.ends_with("--help") && line.starts_with("diskspd");
        assert!(
            is_help || ended.code == Some(1) && ended.stderr.contains("cannot write to standard output"),
            "{line}: {ended:?}"
        );
    }
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ended =
        common::ended(command(HALFPOWER, ["run", "/nowhere/at/all"]).stderr(Stdio::from(full)).spawn().unwrap());
    assert_eq!(ended.code, Some(2), "a standard error that takes nothing is no panic: {ended:?}");
}
