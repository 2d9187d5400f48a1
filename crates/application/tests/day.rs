//! A recording of a day, in bounded memory.

use application::profile::{Role, profile};
use apptrace::{
    Access, Event, Header, Interface, Kind, OpenFile, Request, Summary, Thread, TraceReader,
    TraceWriter, TracedFile,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::rc::Rc;

const SECOND: u64 = 1_000_000_000;
const SECONDS: u64 = 24 * 3600;
/// The files of a day: more than have a profile of their own.
const FILES: u32 = 6000;
const PER_SECOND: u64 = 16;

/// Returns the highest resident size of this process so far, in bytes.
fn highest() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn second(number: u64) -> Vec<Event> {
    let mut events = Vec::new();
    if number < u64::from(FILES) {
        let name = format!("file-{number}");
        events.push(Event::File(TracedFile { name, kind: Kind::Regular, size_bytes: None }));
    }
    let request = |index: u64, file: u32, access, offset, bytes: u64| {
        Event::Request(Request {
            at_ns: number * SECOND + index * (SECOND / PER_SECOND),
            duration_ns: Some(2_000_000),
            thread: Some(0),
            file,
            access,
            interface: Interface::SystemCall,
            offset: Some(offset),
            bytes,
            result: Some(bytes as i64),
            open: OpenFile::default(),
        })
    };
    for index in 0..PER_SECOND / 4 {
        let commit = number * (PER_SECOND / 4) + index;
        events.push(request(index * 4, 0, Access::Write, commit * 8192, 8192));
        events.push(request(index * 4 + 1, 0, Access::SyncData, 0, 0));
        // 64 GiB: no two reads are of one block for hours.
        let block = commit.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 24);
        events.push(request(index * 4 + 2, 1, Access::Read, block * 4096, 4096));
        let other = (number % u64::from(FILES)).min(number) as u32;
        events.push(request(index * 4 + 3, other.max(2), Access::Write, index * 4096, 4096));
    }
    events
}

#[derive(Clone, Default)]
struct Pipe(Rc<RefCell<VecDeque<u8>>>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Made {
    writer: Option<TraceWriter<Pipe>>,
    pipe: Pipe,
    next: u64,
}

impl Made {
    fn more(&mut self) {
        let Some(mut writer) = self.writer.take() else { return };
        if self.next == SECONDS {
            let elapsed_ns = SECONDS * SECOND;
            writer.finish(Summary { elapsed_ns, ..Summary::default() }).unwrap();
            return;
        }
        for event in second(self.next) {
            writer.event(&event).unwrap();
        }
        self.next += 1;
        self.writer = Some(writer);
    }
}

impl Read for Made {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.pipe.0.borrow().is_empty() && self.writer.is_some() {
            self.more();
        }
        self.pipe.0.borrow_mut().read(into)
    }
}

#[test]
fn a_day_is_profiled_in_bounded_memory() {
    let pipe = Pipe::default();
    let mut writer = TraceWriter::new(pipe.clone(), &Header::default()).unwrap();
    writer.event(&Event::Thread(Thread { process: 1, thread: 1, name: None })).unwrap();
    for name in ["wal", "table", "other"] {
        let file = TracedFile { name: name.into(), kind: Kind::Regular, size_bytes: None };
        writer.event(&Event::File(file)).unwrap();
    }
    let before = highest();
    let made = Made { writer: Some(writer), pipe, next: 0 };
    let profile = profile(TraceReader::new(made).unwrap()).unwrap();
    let grown = highest() - before;
    assert_eq!(profile.requests, SECONDS * PER_SECOND);
    let file = |name: &str| profile.files.iter().find(|file| file.name == name).unwrap();
    assert_eq!((file("wal").role, file("table").role), (Role::Log, Role::Data));
    assert_eq!(file("wal").syncs.as_ref().unwrap().calls, SECONDS * PER_SECOND / 4);
    assert!(profile.files.iter().any(|file| file.name == "all other files"));
    assert!(grown < 768 << 20, "{} MiB", grown >> 20);
}
