//! The user's data: everything is checked before the first byte is written, and files that halfpower itself made are told from the user's.

mod common;

use common::places::{Loop, Mount, memory_directory};
use common::{HALFPOWER, command, halfpower, halfpower_in, wait_until};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;

/// A file of the user's.
fn precious(directory: &Path, name: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, vec![7; MIB as usize]).unwrap();
    path.display().to_string()
}

fn is_untouched(path: &str) -> bool {
    fs::read(path).unwrap().iter().all(|byte| *byte == 7)
}

#[test]
fn what_is_refused_was_not_overwritten() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    let (a, b) = (precious(here.path(), "a"), precious(here.path(), "b"));
    let log = precious(here.path(), "log");
    let own = format!("{a} --destroy-data {a} --op write");
    for (words, why) in [
        (format!("run {own} --request 3000"), "multiple"),
        (format!("run {own} --verify --verify-log {log}"), "cannot make this file"),
        (format!("run {own} --verify --verify-log {a}/log"), "cannot make this file"),
        (format!("run {own} --region 2m"), "more than"),
        (format!("run {a} --destroy-data {a} --op read --verify"), "only with verification"),
        (format!("sweep {own} --request 4k,2m"), "too small"),
        (format!("run {a} {b} --destroy-data {a} --op write"), "only read"),
        (format!("run {a} {b} --destroy-data {a} --destroy-data {b} --op write --chunk 2m"), "chunk"),
        (format!("sqlio -kW -frandom -s1 -BY {a} {b} --destroy-data {a}"), "only read"),
        (format!("sqlio -kW -frandom -s1 -b2048 -BY {a} --destroy-data {a}"), "too small"),
        (format!("diskspd -d1 -W0 -w100 {a} {b} --destroy-data {a}"), "only read"),
        (format!("diskspd -d1 -W0 -w100 -b2M {a} --destroy-data {a}"), "smaller"),
        (format!("iozone -t 2 -F {a} {b} -s 1m -i 0 --destroy-data {a}"), "only read"),
        (format!("iozone -i 0 -f {a} -s 2m --destroy-data {a}"), "more than its 1 MiB"),
        (
            format!(
                "fio --size=1m --rw=write --destroy-data={a} --name=x --filename={a} --name=y --stonewall --filename={a} --bs=3000 --direct=1"
            ),
            "multiple",
        ),
    ] {
        let ended = halfpower(&words);
        assert_eq!(ended.code, Some(2), "{words}: {ended:?}");
        assert!(ended.stderr.contains(why), "{words}: {}", ended.stderr);
        assert!(is_untouched(&a) && is_untouched(&b) && is_untouched(&log), "{words}");
    }
}

#[test]
fn a_second_member_that_may_not_be_written_keeps_the_first() {
    let _one = common::alone();
    let device = or_skip!(Loop::make(8 * MIB));
    let mount = or_skip!(Mount::on_loop("ext4", 32 * MIB));
    fs::OpenOptions::new().write(true).open(&device.device).unwrap().write_all_at(&[7; 8192], MIB).unwrap();
    let (first, second) = (device.device.clone(), mount.device().device.clone());
    let destroy = format!("--destroy-data {first} --destroy-data {second}");
    halfpower(&format!("run {first} {second} --op write {destroy}")).refused(&[&second, "is mounted on"]);
    halfpower(&format!("study {first} {second} {destroy} --output {}", mount.name())).refused(&[&second]);
    let mut read = [0; 8192];
    fs::File::open(&device.file).unwrap().read_exact_at(&mut read, MIB).unwrap();
    assert_eq!(read, [7; 8192], "not a byte of it has changed");
}

/// A dialect's run that makes `data` in the current directory and writes it for long, or for a moment.
fn writers(data: &str) -> Vec<(&'static str, String, String)> {
    vec![
        (
            "fio",
            format!("fio --name=a --filename={data} --size=4m --rw=write --time_based --runtime=60"),
            format!("fio --name=a --filename={data} --size=4m --rw=write --keep"),
        ),
        (
            "iozone",
            format!("iozone -i 0 -f {data} -s 16m -r 4k --repeats 1000"),
            format!("iozone -i 0 -w -f {data} -s 4m -r 64k --repeats 1"),
        ),
        ("diskspd", format!("diskspd -c4M -d60 -W0 -w100 {data}"), format!("diskspd -c4M -d1 -W0 -w100 {data}")),
        (
            "sqlio",
            format!("sqlio -kW -frandom -s60 -BY --size 4m {data}"),
            format!("sqlio -kW -frandom --runtime 50ms -BY --size 4m {data}"),
        ),
    ]
}

/// Kills each writer, and lets it run again; then once more over what it kept; then over what the user wrote since.
fn made_by_halfpower(here: &Path) {
    let data = here.join("data.dat");
    for (tool, long, short) in writers("data.dat") {
        let mut child = command(HALFPOWER, long.split(' ')).current_dir(here).spawn().unwrap();
        wait_until("the file", || fs::metadata(&data).is_ok_and(|data| data.len() >= MIB / 4));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(data.exists(), "{tool}: a killed program removes nothing");
        for round in ["after a kill", "over what it kept"] {
            let ended = halfpower_in(here, &short);
            assert_eq!(ended.code, Some(0), "{tool} {round}: {ended:?}");
            assert!(data.exists(), "{tool} {round}: it was to be kept");
        }
        let mut own = fs::read(&data).unwrap();
        own[0] ^= 1;
        fs::write(&data, &own).unwrap();
        let ended = halfpower_in(here, &short);
        assert_eq!(ended.code, Some(2), "{tool}: the user has written it: {ended:?}");
        assert!(ended.stderr.contains("--destroy-data"), "{tool}: {ended:?}");
        assert!(fs::read(&data).unwrap() == own, "{tool}");
        fs::remove_file(&data).unwrap();
    }
    let left: Vec<PathBuf> = fs::read_dir(here).unwrap().map(|entry| entry.unwrap().path()).collect();
    let left: Vec<_> = left.iter().filter(|path| !path.ends_with(".data.dat.halfpower")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_halfpower_made_the_next_run_uses_and_what_the_user_wrote_since_stays() {
    let _one = common::alone();
    made_by_halfpower(memory_directory().path());
}

#[test]
fn so_it_is_where_files_have_no_attributes() {
    let _one = common::alone();
    let mount = or_skip!(Mount::with(&["-t", "ramfs", "halfpower-test"]));
    made_by_halfpower(&mount.at);
}

#[test]
fn a_file_that_another_run_uses_is_not_removed() {
    let _one = common::alone();
    let here = memory_directory();
    let data = here.path().join("data.dat");
    let (_, long, short) = writers("data.dat").remove(0);
    let mut child = command(HALFPOWER, long.split(' ')).current_dir(here.path()).spawn().unwrap();
    wait_until("the file", || fs::metadata(&data).is_ok_and(|data| data.len() >= MIB));
    let inode = fs::metadata(&data).unwrap().ino();
    halfpower_in(here.path(), &short).refused(&["data.dat", "--destroy-data"]);
    assert_eq!(fs::metadata(&data).unwrap().ino(), inode);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn data_are_read_back_only_from_what_the_run_wrote() {
    let _one = common::alone();
    let here = memory_directory();
    let (file, log) = (here.path().join("file"), here.path().join("log"));
    fs::write(&file, vec![0; MIB as usize]).unwrap();
    let (file, log) = (file.display().to_string(), log.display().to_string());
    let run = format!("run {file} --destroy-data {file} --op write --buffered --bytes 1m --repeats 1 --verify");
    assert_eq!(halfpower(&format!("{run} --verify-log {log}")).code, Some(0));
    halfpower_in(here.path(), &format!("verify {log}")).refused(&["no target", "after the log"]);
    halfpower(&format!("verify {log} {}", here.path().display())).refused(&["after the log"]);
    assert_eq!(halfpower(&format!("verify {log} {file}")).code, Some(0));
}

#[test]
fn sqlio_reaches_devices_and_simulated_machines_by_their_names() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    let parameters = here.path().join("param.txt");
    fs::write(&parameters, "twin:gateway-1997 1 0x0 8\n").unwrap();
    let ended = halfpower_in(here.path(), "sqlio -kR -frandom -s1 -b8 -Fparam.txt --json one.json");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let document: serde_json::Value = serde_json::from_slice(&fs::read(here.path().join("one.json")).unwrap()).unwrap();
    assert_eq!(document["machine"]["simulated"], true);
    halfpower_in(here.path(), "sqlio -kR -frandom -s1 -Rno-such-device").refused(&["/dev/no-such-device", "no such"]);
    let device = or_skip!(Loop::make(8 * MIB));
    let name = device.device.trim_start_matches("/dev/");
    let words = format!("sqlio -kR -frandom --runtime 50ms -b8 -R{name} --json two.json");
    let ended = halfpower_in(here.path(), &words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let document: serde_json::Value = serde_json::from_slice(&fs::read(here.path().join("two.json")).unwrap()).unwrap();
    assert_eq!(document["target"]["kind"], "device");
    assert!(!here.path().join(name).exists());
    let writes = words.replace("-kR", "-kW");
    halfpower_in(here.path(), &writes).refused(&[&device.device, "--destroy-data"]);
    let ended = halfpower_in(here.path(), &format!("{writes} --destroy-data {name}"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
