//! The user's data: all checks come before the first write, and halfpower tells its own files from
//! the user's.

mod common;

use common::places::{Loop, Mount, Throttle, memory_directory, tool};
use common::{
    HALFPOWER, command, ended, halfpower, halfpower_in, number, points, test_files, wait_until,
};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

const MIB: u64 = 1 << 20;

fn precious(directory: &Path, name: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, vec![7; MIB as usize]).unwrap();
    path.display().to_string()
}

fn is_untouched(path: &str) -> bool {
    fs::read(path).unwrap().iter().all(|byte| *byte == 7)
}

#[test]
fn refused_targets_are_not_overwritten() {
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
        (
            format!("run {a} {b} --destroy-data {a} --destroy-data {b} --op write --chunk 2m"),
            "chunk",
        ),
        (format!("sqlio -kW -frandom -s1 -BY {a} {b} --destroy-data {a}"), "only read"),
        (format!("sqlio -kW -frandom -s1 -b2048 -BY {a} --destroy-data {a}"), "too small"),
        (format!("diskspd -d1 -W0 -w100 {a} {b} --destroy-data {a}"), "only read"),
        (format!("diskspd -d1 -W0 -w100 -b2M {a} --destroy-data {a}"), "smaller"),
        (format!("iozone -t 2 -F {a} {b} -s 1m -i 0 --destroy-data {a}"), "only read"),
        (format!("iozone -i 0 -f {a} -s 2m --destroy-data {a}"), "more than its 1 MiB"),
    ] {
        let ended = halfpower(&words);
        assert_eq!(ended.code, Some(2), "{words}: {ended:?}");
        assert!(ended.stderr.contains(why), "{words}: {}", ended.stderr);
        assert!(is_untouched(&a) && is_untouched(&b) && is_untouched(&log), "{words}");
    }
}

#[test]
fn only_the_region_is_overwritten() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    for options in [
        "run --op write --runtime 20ms --repeats 1",
        "run --op read --runtime 20ms --repeats 1",
        "run --op write --verify --runtime 20ms --repeats 1",
        "sweep --op write --request 4k,64k --runtime 20ms --repeats 1",
        "tune --op write --knob depth=8 --yes --budget 1s",
    ] {
        let file = precious(here.path(), "mine");
        let region = "--region-start 300k --region 256k --destroy-data";
        let ended = halfpower(&format!("{options} {file} {region} {file}"));
        assert_eq!(ended.code, Some(0), "{options}: {ended:?}");
        let data = fs::read(&file).unwrap();
        let of = |range: std::ops::Range<usize>| data[range].iter().all(|byte| *byte == 7);
        let (start, end) = (300 << 10, 556 << 10);
        assert!(of(0..start) && of(end..data.len()), "{options}");
        assert!(!of(start..end), "{options}");
    }
}

#[test]
fn no_output_replaces_a_file_that_is_read() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    let jobs = "[a]\nfilename=twin:gateway-1997\nsize=1m\nrw=read\n";
    let log = "fio version 2 iolog\ntwin:gateway-1997 add\ntwin:gateway-1997 open\ntwin:gateway-1997 read 0 4096\ntwin:gateway-1997 close\n";
    let script = "IOR START\ntestFile=data\nRUN\nIOR STOP\n";
    let trace = "fio version 3 iolog\n0 f add\n1 f open\n2 f read 0 4096\n3 f close\n";
    let clients = format!("localhost {} /bin/true\n", here.path().display());
    fs::write(here.path().join("all"), "include in\n").unwrap();
    let document = halfpower("run twin:gateway-1997 --repeats 1 --json").stdout;
    fs::write(here.path().join("trace"), trace).unwrap();
    for (content, command) in [
        (jobs, "fio all --json=in"),
        (jobs, "fio all --output=in"),
        (log, "fio --name=a --read_iolog=in --ioengine=sync --json=in"),
        ("abc", "fio --name=a --filename=f --size=64k --rw=write --buffer_pattern='in' --json=in"),
        ("abc", "diskspd -d1 -W0 -w100 -c64K -Z4K,in --json in f"),
        (script, "ior -f in --json in"),
        (&clients, "iozone -i 0 -s 64k -r 64k -t 1 -+m in --json in"),
        (trace, "tune . --replay in --output in"),
        (trace, "profile in --html in"),
        (&document, "profile trace --study in --html in"),
        (&document, "profile trace --study in -o in"),
        ("1000,1s\n", "run twin:gateway-1997 --load @in --openmetrics in"),
    ] {
        fs::write(here.path().join("in"), content).unwrap();
        halfpower_in(here.path(), &format!("{command} --force")).refused(&["in: ", "read"]);
        assert_eq!(fs::read_to_string(here.path().join("in")).unwrap(), content, "{command}");
        assert!(!here.path().join("f").exists(), "{command}");
    }
}

#[test]
fn two_outputs_need_two_names() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    for command in [
        "fio --name=a --filename=twin:gateway-1997 --size=1m --rw=read --output=out --json=./out",
        "fio --name=a --filename=twin:gateway-1997 --size=1m --rw=read --output=l_bw.1.log --write_bw_log=l",
        "iozone -i 0 -s 64 -b out --json out",
        "compare --a twin:gateway-1997 --b twin:gateway-1997 --html out --csv out",
    ] {
        halfpower_in(here.path(), command).refused(&["names this file, too"]);
        assert_eq!(fs::read_dir(here.path()).unwrap().count(), 0, "{command}");
    }
}

#[test]
fn an_output_replaces_no_tasks_file_and_no_file_of_the_history() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    let names = ["t.00000000", "t.00000001", "d.00000001.2", "h-wal", "h-shm", "h-journal"];
    for name in names {
        precious(here.path(), name);
    }
    for option in ["--json", "-O summaryFormat=JSON,summaryFile=", "-O stoneWallingStatusFile="] {
        let to = |name: &str| match option.strip_suffix('=') {
            Some(_) => format!("{option}{name}"),
            None => format!("{option} {name}"),
        };
        let read = if option.contains("Status") { "-w -D 1" } else { "-r" };
        for (command, name) in [
            ("-F -o t", "t.00000001"),
            ("-F -o ./t", "t.00000000"),
            ("-F -m -i 3 -o d", "d.00000001.2"),
        ] {
            let command = format!("ior --tasks 2 {read} -b 64k -t 64k {command} --force");
            halfpower_in(here.path(), &format!("{command} {}", to(name))).refused(&[name]);
        }
    }
    for name in ["h-wal", "h-shm", "h-journal"] {
        let command = "fio --name=a --filename=twin:gateway-1997 --size=1m --rw=read --force";
        halfpower_in(here.path(), &format!("{command} --history h --output={name}"))
            .refused(&[name]);
    }
    for name in names {
        assert!(is_untouched(here.path().join(name).to_str().unwrap()), "{name}");
    }
}

#[test]
fn places_that_direct_io_cannot_have_are_refused() {
    let _one = common::alone();
    let device = or_skip!(Loop::of_sectors(8 * MIB, 4096));
    let name = &device.device;
    for options in [
        "run --offset 512 --request 4k",
        "diskspd -d1 -W0 -Sh -b4K -r512",
        "diskspd -d1 -W0 -Sh -b4K -s512",
        "diskspd -d1 -W0 -Sh -b4K -t2 -T512",
        "fio --name=a --bs=4k --direct=1 --rw=read:512 --filename",
        "fio --name=a --bs=4k --direct=1 --rw=read:-8704 --filename",
        "fio --name=a --bs=4k --direct=1 --rw=read --zonemode=strided --zonesize=8k --zonerange=8k --zoneskip=512 --filename",
    ] {
        halfpower(&format!("{options} {name}")).refused(&["with direct I/O", "multiples of 4 KiB"]);
    }
}

#[test]
fn a_stripe_has_no_file_twice() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    let (a, b) = (precious(here.path(), "a"), precious(here.path(), "b"));
    let [link, hard] = ["link", "hard"].map(|name| here.path().join(name));
    std::os::unix::fs::symlink("a", &link).unwrap();
    fs::hard_link(&a, &hard).unwrap();
    for other in [&a, link.to_str().unwrap(), hard.to_str().unwrap()] {
        let write = format!("--op write --destroy-data {a} --destroy-data {other}");
        for command in [
            format!("run {a} {other}"),
            format!("run {a} {other} {write} --verify"),
            format!("run {a} {b} {other} {write} --destroy-data {b} --raid 5"),
            format!("study {a} {other} --output {}", here.path().join("out").display()),
        ] {
            halfpower(&command).refused(&["the same file or device as"]);
        }
        assert!(is_untouched(&a) && is_untouched(&b));
        let each = halfpower(&format!("run {a} {other} --each --runtime 20ms --repeats 1"));
        assert_eq!(each.code, Some(0), "{each:?}");
    }
}

#[test]
fn a_link_to_nothing_is_named() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("nothing", here.path().join("link")).unwrap();
    for command in [
        "fio --name=a --filename=link --rw=write --size=64k",
        "iozone -i 0 -s 64k -r 64k -f link",
        "diskspd -c64K -d1 -W0 link",
        "sqlio -kW --size 64k --runtime 20ms link",
        "ior -w -b 64k -t 64k -o link",
    ] {
        let ended = halfpower_in(here.path(), command);
        assert_eq!(ended.code, Some(2), "{command}: {ended:?}");
        assert!(ended.stderr.contains("link: it is a symbolic link to no file"), "{ended:?}");
        assert_eq!(fs::read_dir(here.path()).unwrap().count(), 1, "{command}");
    }
}

#[test]
fn an_unwritable_member_protects_the_others() {
    let _one = common::alone();
    let device = or_skip!(Loop::make(8 * MIB));
    let mount = or_skip!(Mount::on_loop("ext4", 32 * MIB));
    fs::OpenOptions::new()
        .write(true)
        .open(&device.device)
        .unwrap()
        .write_all_at(&[7; 8192], MIB)
        .unwrap();
    let (first, second) = (device.device.clone(), mount.device().device.clone());
    let destroy = format!("--destroy-data {first} --destroy-data {second}");
    halfpower(&format!("run {first} {second} --op write {destroy}"))
        .refused(&[&second, "is mounted on"]);
    halfpower(&format!("study {first} {second} {destroy} --output {}", mount.name()))
        .refused(&[&second]);
    let mut read = [0; 8192];
    fs::File::open(&device.file).unwrap().read_exact_at(&mut read, MIB).unwrap();
    assert_eq!(read, [7; 8192], "not a byte of it has changed");
}

fn writers(data: &str) -> Vec<(&'static str, String, String)> {
    vec![
        (
            "fio",
            format!(
                "fio --name=a --filename={data} --size=4m --rw=write --time_based --runtime=60"
            ),
            format!("fio --name=a --filename={data} --size=4m --rw=write"),
        ),
        (
            "iozone",
            format!("iozone -i 0 -f {data} -s 16m -r 4k --repeats 1000"),
            format!("iozone -i 0 -w -f {data} -s 4m -r 64k --repeats 1"),
        ),
        (
            "diskspd",
            format!("diskspd -c4M -d60 -W0 -w100 {data}"),
            format!("diskspd -c4M -d1 -W0 -w100 {data}"),
        ),
        (
            "sqlio",
            format!("sqlio -kW -frandom -s60 -BY --size 4m {data}"),
            format!("sqlio -kW -frandom --runtime 50ms -BY --size 4m {data}"),
        ),
    ]
}

fn made_by_halfpower(here: &Path) {
    let data = here.join("data.dat");
    for (tool, long, short) in writers("data.dat") {
        let mut child = command(HALFPOWER, long.split(' ')).current_dir(here).spawn().unwrap();
        wait_until("the file", || fs::metadata(&data).is_ok_and(|data| data.len() >= MIB / 4));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(data.exists(), "{tool}: a killed program removes nothing");
        halfpower_in(here, &short).refused(&["data.dat", "--destroy-data"]);
        fs::remove_file(&data).unwrap();
        for round in ["at first", "over what it kept"] {
            let ended = halfpower_in(here, &short);
            assert_eq!(ended.code, Some(0), "{tool} {round}: {ended:?}");
            assert!(data.exists(), "{tool} {round}: it must be kept");
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
    let left: Vec<PathBuf> =
        fs::read_dir(here).unwrap().map(|entry| entry.unwrap().path()).collect();
    let left: Vec<_> = left.iter().filter(|path| !path.ends_with(".data.dat.halfpower")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn own_files_are_reused_unless_the_user_changed_them() {
    let _one = common::alone();
    made_by_halfpower(memory_directory().path());
}

#[test]
fn own_files_are_reused_without_extended_attributes() {
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
fn only_the_runs_own_target_is_verified() {
    let _one = common::alone();
    let here = memory_directory();
    let (file, log) = (here.path().join("file"), here.path().join("log"));
    fs::write(&file, vec![0; MIB as usize]).unwrap();
    let (file, log) = (file.display().to_string(), log.display().to_string());
    let run = format!(
        "run {file} --destroy-data {file} --op write --buffered --bytes 1m --repeats 1 --verify"
    );
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
    let document: serde_json::Value =
        serde_json::from_slice(&fs::read(here.path().join("one.json")).unwrap()).unwrap();
    assert_eq!(document["machine"]["simulated"], true);
    halfpower_in(here.path(), "sqlio -kR -frandom -s1 -Rno-such-device")
        .refused(&["/dev/no-such-device", "no such"]);
    let device = or_skip!(Loop::make(8 * MIB));
    let name = device.device.trim_start_matches("/dev/");
    let words = format!("sqlio -kR -frandom --runtime 50ms -b8 -R{name} --json two.json");
    let ended = halfpower_in(here.path(), &words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let document: serde_json::Value =
        serde_json::from_slice(&fs::read(here.path().join("two.json")).unwrap()).unwrap();
    assert_eq!(document["target"]["kind"], "device");
    assert!(!here.path().join(name).exists());
    let writes = words.replace("-kR", "-kW");
    halfpower_in(here.path(), &writes).refused(&[&device.device, "--destroy-data"]);
    let ended = halfpower_in(here.path(), &format!("{writes} --destroy-data {name}"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: a signal to a child that was not waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

fn bytes_read(child: &Child) -> u64 {
    let io = fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap_or_default();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).unwrap_or(0)
}

#[test]
fn a_stopped_run_is_discarded_and_repeated() {
    let _one = common::alone();
    let here = memory_directory();
    let words = format!(
        "run {} --size 8m --buffered --runtime 1 --repeats 1 --max-repeats 1 --json",
        here.path().display()
    );
    let child = command(HALFPOWER, words.split(' ')).spawn().unwrap();
    wait_until("the first reads", || bytes_read(&child) > 4 * MIB);
    signal(&child, libc::SIGSTOP);
    let stat = format!("/proc/{}/stat", child.id());
    wait_until("the stop", || fs::read_to_string(&stat).unwrap().contains(") T "));
    // The pause itself is the fault.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    signal(&child, libc::SIGCONT);
    let document = ended(child).good_json();
    let point = &points(&document)[0];
    let warnings = point["warnings"].to_string();
    assert!(
        warnings.contains("a run was left out and repeated: the program was stopped for "),
        "{warnings}"
    );
    assert!(
        number(point, "/achieved/measured_ns") < 1.5e9,
        "the run that counts has none of it: {point:#}"
    );
}

#[test]
fn a_file_under_a_device_is_refused_as_output_even_with_force() {
    let _one = common::alone();
    let device = or_skip!(Loop::make(8 * MIB));
    let (name, file) = (&device.device, device.file.display());
    for line in [
        format!("fio --force --name=a --filename={name} --size=1m --rw=read --json={file}"),
        format!("diskspd --force -d1 -W0 -b64K --json {file} {name}"),
        format!("sqlio --force -kR -s1 -b64 --json {file} {name}"),
        format!("iozone --force -i 1 -r 64k -s 1m -f {name} --json {file}"),
    ] {
        halfpower(&line).refused(&["it is measured"]);
    }
    let here = tempfile::tempdir().unwrap();
    let lines = format!(
        "set number 10\nset transactions 10\nset location {}\nrun {name}\nquit\n",
        here.path().display()
    );
    fs::write(here.path().join("session"), lines).unwrap();
    let ended = halfpower_in(here.path(), "postmark session");
    assert!(ended.stderr.contains("keeps data"), "{ended:?}");
    assert!(ended.stdout.contains("transactions"), "its report is printed all the same: {ended:?}");
    assert!(
        fs::read(&device.file).unwrap().iter().all(|byte| *byte == 0),
        "not a byte of it has changed"
    );
}

#[test]
fn the_file_size_limit_is_an_error_like_a_full_disk() {
    let _one = common::alone();
    let here = memory_directory();
    let at = here.path().display();
    for words in [
        format!("run {at} --size 8m --buffered --bytes 1m"),
        format!("fio --name=a --directory={at} --size=8m --rw=read"),
        format!("metadata {at} --files 2 --file-bytes 1m --rounds 1"),
    ] {
        let limited =
            command("prlimit", ["--fsize=524288", HALFPOWER].into_iter().chain(words.split(' ')));
        let ended = common::finish(limited);
        assert_eq!(ended.code, Some(1), "{words}: {ended:?}");
        assert!(
            ["larger than", "too large"].iter().any(|said| ended.stderr.contains(said)),
            "{words}: {ended:?}"
        );
        assert_eq!(fs::read_dir(here.path()).unwrap().count(), 0, "{words}");
    }
}

#[test]
fn an_unmounted_target_is_not_replaced_by_the_disk_below() {
    let _one = common::alone();
    let mount = or_skip!(Mount::tmpfs("64m"));
    let words = format!(
        "sweep {} --size 8m --buffered --op write --allocate written,extend --request 4k,64k --bytes 8m --repeats 20 --max-repeats 20 --json",
        mount.name()
    );
    // The output is not read during the run, and the document is larger than a pipe.
    let mut child = command(HALFPOWER, words.split(' ')).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the test file", || !test_files(&mount.at).is_empty());
    if let Err(why) = tool("umount", &["--lazy", mount.name()]) {
        child.kill().unwrap();
        child.wait().unwrap();
        return common::skip(&why);
    }
    // The name now refers to the disk below.
    while child.try_wait().unwrap().is_none() {
        assert_eq!(
            fs::read_dir(&mount.at).unwrap().count(),
            0,
            "nothing is made on the disk below"
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let ended = ended(child);
    assert!(matches!(ended.code, Some(0..=2)), "{ended:?}");
    assert_eq!(fs::read_dir(&mount.at).unwrap().count(), 0);
}

#[test]
fn target_warnings_are_in_the_text_and_the_document() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("holes");
    fs::File::create(&file).unwrap().set_len(8 * MIB).unwrap();
    let file = file.display();
    for words in [
        format!("run {file} --buffered --bytes 1m --repeats 1"),
        format!("sweep {file} --buffered --bytes 1m --repeats 1 --request 4k,8k"),
    ] {
        let text = halfpower(&words).stdout;
        assert!(text.contains("reads as zeros"), "{words}: {text}");
        let document = halfpower(&format!("{words} --json")).good_json();
        assert!(document["warnings"].to_string().contains("reads as zeros"), "{document:#}");
    }
}

#[test]
fn hanging_storage_is_named_and_abandoned_at_the_second_interrupt() {
    let _one = common::alone();
    let device = or_skip!(Loop::make(8 * MIB));
    let _throttle = or_skip!(Throttle::set(&device, &[("read_bps", 400_000)]));
    let words = format!(
        "run {} --request 1m --engine sync --runtime 60 --json --progress none",
        device.device
    );
    let mut child = command(HALFPOWER, words.split(' ')).spawn().unwrap();
    let is_waiting = |task: std::io::Result<fs::DirEntry>| {
        fs::read_to_string(task.unwrap().path().join("stat"))
            .is_ok_and(|stat| stat.contains(") D "))
    };
    let tasks = format!("/proc/{}/task", child.id());
    wait_until("the first request", || bytes_read(&child) > MIB);
    wait_until("a request that waits", || fs::read_dir(&tasks).unwrap().any(is_waiting));
    signal(&child, libc::SIGINT);
    let mut said = String::new();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut lines, &mut said).unwrap();
    assert!(said.contains("waiting for the storage") && said.contains("Ctrl-C again"), "{said}");
    signal(&child, libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
