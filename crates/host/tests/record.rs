//! Recordings of programs with known requests. As root, with trace points.

#![cfg(target_os = "linux")]

use apptrace::{Access, Event, Kind, Request, Summary, TraceReader, TracedFile};
use host::record::{RecordError, RecordOptions, Recorder, Subject};
use std::path::Path;
use std::sync::atomic::AtomicBool;

struct Recorded {
    files: Vec<TracedFile>,
    threads: Vec<apptrace::Thread>,
    requests: Vec<Request>,
    summary: Summary,
}

impl Recorded {
    fn of(&self, name: &str) -> Vec<&Request> {
        let is_it = |request: &&Request| self.files[request.file as usize].name.ends_with(name);
        self.requests.iter().filter(is_it).collect()
    }

    fn of_kind(&self, name: &str, access: Access) -> Vec<&Request> {
        self.of(name).into_iter().filter(|request| request.access == access).collect()
    }
}

fn record(command: &[&str], anonymous: bool) -> Option<Recorded> {
    let subject = Subject::Command(command.iter().map(Into::into).collect());
    let recorder = match Recorder::new(&subject) {
        Err(error @ (RecordError::NotMounted | RecordError::Permission(_))) => {
            assert!(std::env::var_os("HALFPOWER_REQUIRE").is_none(), "{error}");
            eprintln!("skipped: {error}");
            return None;
        }
        recorder => recorder.unwrap(),
    };
    let options = RecordOptions { at_most: None, anonymous, source: "test".into() };
    let mut bytes = Vec::new();
    let summary = recorder.record(&mut bytes, &options, &AtomicBool::new(false)).unwrap();
    let mut reader = TraceReader::new(&bytes[..]).unwrap();
    let mut recorded =
        Recorded { files: Vec::new(), threads: Vec::new(), requests: Vec::new(), summary };
    for event in reader.by_ref() {
        match event.unwrap() {
            Event::File(file) => recorded.files.push(file),
            Event::Thread(thread) => recorded.threads.push(thread),
            Event::Request(request) => recorded.requests.push(request),
            Event::Renamed(renamed) => {
                recorded.files[renamed.file as usize].name = renamed.name;
            }
            Event::Lost(count) => panic!("{count} events were lost"),
        }
    }
    assert_eq!(reader.summary(), Some(&recorded.summary));
    Some(recorded)
}

fn transfers(requests: &[&Request]) -> Vec<(Option<u64>, u64, Option<i64>)> {
    requests.iter().map(|request| (request.offset, request.bytes, request.result)).collect()
}

fn path(here: &Path, name: &str) -> String {
    here.join(name).to_str().unwrap().to_owned()
}

#[test]
fn positions_are_followed_through_reads_writes_seeks_and_forks() {
    let here = tempfile::tempdir().unwrap();
    let (from, to) = (path(here.path(), "from"), path(here.path(), "to"));
    std::fs::write(&from, vec![1; 40_000]).unwrap();
    std::fs::write(&to, "").unwrap();
    // The shell holds the files, so that their names are seen; dd seeks and reads 4 KiB at a time;
    // two programs append through a descriptor that they share.
    let script = format!(
        "exec 5<{from} 6<>{to} 7>>{to}; sleep 0.1; \
         dd bs=4k skip=2 seek=1 count=3 conv=notrunc,fsync <&5 >&6 2>/dev/null; /bin/echo 12345 >&7; /bin/echo 678 >&7; sleep 0.05; exit 3"
    );
    let Some(recorded) = record(&["sh", "-c", &script], false) else { return };
    assert_eq!(recorded.summary.exit_status, Some(3));
    let k = 4096;
    let reads = recorded.of_kind("/from", Access::Read);
    let expected: Vec<_> = (2..5).map(|block| (Some(block * k), k, Some(4096))).collect();
    assert_eq!(transfers(&reads), expected);
    let writes = recorded.of_kind("/to", Access::Write);
    let mut expected: Vec<_> = (1..4).map(|block| (Some(block * k), k, Some(4096))).collect();
    expected.extend([(Some(4 * k), 6, Some(6)), (Some(4 * k + 6), 4, Some(4))]);
    assert_eq!(transfers(&writes), expected);
    assert!(writes[4].open.append && !writes[0].open.append);
    let syncs = recorded.of_kind("/to", Access::SyncFile);
    assert_eq!(syncs.len(), 1);
    assert!(writes[2].at_ns < syncs[0].at_ns && syncs[0].at_ns < writes[3].at_ns);
    // Different processes.
    let thread = |request: &Request| &recorded.threads[request.thread.unwrap() as usize];
    assert_eq!(thread(writes[0]).name.as_deref(), Some("dd"));
    assert_ne!(thread(writes[3]).process, thread(writes[4]).process);
    let from = recorded.files.iter().find(|file| file.name == from).unwrap();
    assert_eq!((from.kind, from.size_bytes), (Kind::Regular, Some(40_000)));
    assert!(recorded.requests.is_sorted_by_key(|request| request.at_ns));
}

#[test]
fn files_have_their_last_names() {
    let here = tempfile::tempdir().unwrap();
    let script = format!(
        "cd {}; mkdir new; exec 5>new/log; echo 1 >&5; mv new ready; exec 6>ready/.temporary; echo 22 >&6; \
         mv ready/.temporary ready/data; echo 333 >ready/next; mv ready/next ready/data; sleep 0.05",
        here.path().display()
    );
    let Some(recorded) = record(&["sh", "-c", &script], false) else { return };
    let written = |bytes: u64| {
        let is_write = |one: &&Request| one.access == Access::Write && one.bytes == bytes;
        let write = recorded.requests.iter().find(is_write).unwrap();
        recorded.files[write.file as usize].name.clone()
    };
    let names = [2, 3, 4].map(written);
    let expected = ["log", "data", "data"].map(|name| path(here.path(), &format!("ready/{name}")));
    assert_eq!(names, expected);
    // The second was replaced by the third.
    let unlinked = recorded.of_kind("ready/data", Access::Unlink);
    assert_eq!(unlinked.len(), 1, "{unlinked:?}");
    assert_eq!(unlinked[0].file, recorded.requests.iter().find(|one| one.bytes == 3).unwrap().file);
}

#[test]
fn names_are_hidden() {
    let here = tempfile::tempdir().unwrap();
    let file = path(here.path(), "secret");
    std::fs::write(&file, vec![1; 4096]).unwrap();
    let Some(recorded) = record(&["dd", &format!("if={file}"), "of=/dev/null"], true) else {
        return;
    };
    assert!(recorded.requests.iter().any(|request| request.bytes == 512));
    assert!(recorded.files.iter().all(|file| file.name.len() == 16), "{:?}", recorded.files);
    assert!(recorded.threads.iter().all(|thread| thread.name.is_none()));
}

#[test]
fn a_command_that_is_not_there_is_an_error() {
    let subject = Subject::Command(vec!["/no/such/program".into()]);
    let Ok(recorder) = Recorder::new(&subject) else { return };
    let options = RecordOptions { at_most: None, anonymous: false, source: "test".into() };
    let error = recorder.record(Vec::new(), &options, &AtomicBool::new(false)).unwrap_err();
    assert!(error.is_usage() && error.to_string().starts_with("/no/such/program: No such file"));
}

#[test]
fn what_reaches_the_device_is_followed_to_the_thread() {
    let here = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = path(here.path(), "direct");
    let script =
        format!("dd if=/dev/zero of={file} bs=64k count=4 oflag=direct 2>/dev/null; sleep 0.1");
    let Some(recorded) = record(&["sh", "-c", &script], false) else { return };
    let own: Vec<&Request> = recorded
        .requests
        .iter()
        .filter(|request| request.interface == apptrace::Interface::Block)
        .filter(|request| request.thread.is_some() && request.access == Access::Write)
        .collect();
    let bytes: u64 = own.iter().map(|request| request.bytes).sum();
    assert!(bytes >= 4 << 16, "{own:?}");
    let device = &recorded.files[own[0].file as usize];
    assert!(device.kind == Kind::BlockDevice && device.name.starts_with("/dev/"), "{device:?}");
    assert!(own.iter().all(|request| request.duration_ns.is_some()));
}
