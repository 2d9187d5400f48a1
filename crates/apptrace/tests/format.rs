//! The trace file: what is written is read back, and no bytes do harm.

use apptrace::{
    Access, Error, Event, Header, Interface, Kind, OpenFile, Renamed, Request, Summary, Thread,
    TraceReader, TraceWriter, TracedFile,
};
use proptest::prelude::*;
use proptest::{option, sample::select};

fn header() -> Header {
    Header {
        command: vec!["fio".into(), "--name=a".into()],
        host: "here".into(),
        kernel: "Linux 6.12".into(),
        started_unix_ns: Some(1_764_000_000_000_000_000),
        source: "halfpower 0.1.0".into(),
        anonymous: false,
    }
}

fn written(events: &[Event]) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), &header()).unwrap();
    for event in events {
        writer.event(event).unwrap();
    }
    writer.finish(Summary { lost: 3, elapsed_ns: 7, ..Summary::default() }).unwrap()
}

fn starts() -> Vec<Event> {
    let thread = |thread| Event::Thread(Thread { process: 1, thread, name: Some("w".into()) });
    let file = |name: &str| {
        Event::File(TracedFile { name: name.into(), kind: Kind::Regular, size_bytes: Some(9) })
    };
    vec![thread(1), thread(2), file("/a"), file("/b"), file("/c")]
}

fn requests() -> impl Strategy<Value = Event> {
    (
        (any::<u64>(), option::of(any::<u64>()), option::of(0u32..2), 0u32..3),
        select(vec![
            Access::Read,
            Access::Write,
            Access::SyncFile,
            Access::SyncData,
            Access::SyncRange,
            Access::SyncSystem,
            Access::Allocate,
            Access::Truncate,
            Access::Open,
            Access::Close,
            Access::Unlink,
            Access::Discard,
            Access::Flush,
            Access::Prefetch,
            Access::WriteOut,
        ]),
        select(vec![
            Interface::SystemCall,
            Interface::IoUring,
            Interface::Libaio,
            Interface::Mapping,
            Interface::Block,
        ]),
        (option::of(any::<u64>()), any::<u64>(), option::of(any::<i64>()), any::<bool>()),
        (any::<bool>(), any::<bool>(), any::<bool>()),
    )
        .prop_map(|(who, access, interface, how, (direct, dsync, append))| {
            let (at_ns, duration_ns, thread, file) = who;
            let (offset, bytes, result, is_done) = how;
            let result = if is_done { i64::try_from(bytes).ok() } else { result };
            let at_device = interface == Interface::Block;
            let (append, metadata) = (append && !at_device, append && at_device);
            let open = OpenFile { direct, dsync, append, metadata };
            Event::Request(Request {
                at_ns,
                duration_ns,
                thread,
                file,
                access,
                interface,
                offset,
                bytes,
                result,
                open,
            })
        })
}

fn sequential(index: u64) -> Event {
    Event::Request(Request {
        at_ns: index * 10_000,
        duration_ns: Some(9_000),
        thread: Some(0),
        file: 0,
        access: Access::Write,
        interface: Interface::SystemCall,
        offset: Some(index * 8192),
        bytes: 8192,
        result: Some(8192),
        open: OpenFile::default(),
    })
}

proptest! {
    #[test]
    fn events_are_read_back(
        requests in proptest::collection::vec(requests(), 0..300),
        lost in any::<u64>(),
        name in ".{0,60}",
        size_bytes in option::of(any::<u64>()),
    ) {
        let mut events = starts();
        let renamed = Renamed { file: 0, name: name.clone() };
        events.push(Event::File(TracedFile { name, kind: Kind::Unknown, size_bytes }));
        events.push(Event::Renamed(renamed));
        events.push(Event::Thread(Thread { process: u32::MAX, thread: 0, name: None }));
        events.push(Event::Lost(lost));
        let count = requests.len() as u64;
        events.extend(requests);
        let bytes = written(&events);
        let mut reader = TraceReader::new(&bytes[..]).unwrap();
        prop_assert_eq!(reader.header(), &header());
        let read: Vec<Event> = reader.by_ref().map(Result::unwrap).collect();
        prop_assert_eq!(read, events);
        let summary = reader.summary().unwrap();
        prop_assert_eq!((summary.requests, summary.lost, reader.is_truncated()), (count, 3, false));
    }

    #[test]
    fn damage_is_noticed(at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut events = starts();
        events.extend((0..200).map(sequential));
        let mut bytes = written(&events);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let (read, whole) = match TraceReader::new(&bytes[..]) {
            Err(_) => (Vec::new(), false),
            Ok(mut reader) => {
                let read: Result<Vec<Event>, Error> = reader.by_ref().collect();
                let whole = read.is_ok() && !reader.is_truncated();
                (read.unwrap_or_default(), whole)
            }
        };
        prop_assert!(!whole, "byte {} changed and nothing was said", at);
        prop_assert!(events.starts_with(&read));
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(payload in proptest::collection::vec(any::<u8>(), 0..2000), kind in 0u8..4) {
        // Behind a valid header and checksum, so that the decoder sees them.
        let mut bytes = TraceWriter::new(Vec::new(), &header()).unwrap().finish(Summary::default()).unwrap();
        let summary_bytes = serde_json::to_vec(&Summary::default()).unwrap().len() + 13;
        bytes.truncate(bytes.len() - summary_bytes);
        bytes.push(kind);
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(xxhash_rust::xxh3::xxh3_64(&payload).to_le_bytes());
        bytes.extend(&payload);
        let mut reader = TraceReader::new(&bytes[..]).unwrap();
        prop_assert!(reader.by_ref().count() <= payload.len() + 1);
        let _ = TraceReader::new(&payload[..]).map(Iterator::count);
    }
}

#[test]
fn a_cut_file_is_read_to_its_last_whole_block() {
    let mut events = starts();
    events.extend((0..50_000).map(sequential));
    let bytes = written(&events);
    // A sequential request takes few bytes.
    assert!(bytes.len() < 50_000 * 14, "{} bytes", bytes.len());
    let mut reader = TraceReader::new(&bytes[..bytes.len() * 2 / 3]).unwrap();
    let read: Vec<Event> = reader.by_ref().map(Result::unwrap).collect();
    assert!(reader.is_truncated() && reader.summary().is_none());
    assert!(read.len() > 20_000 && events.starts_with(&read), "{} events", read.len());
}

#[test]
fn what_is_not_a_trace_is_refused() {
    let refusal = |bytes: &[u8]| TraceReader::new(bytes).err().unwrap().to_string();
    assert!(refusal(b"time,op,offset").contains("does not begin with HPTRACE"));
    assert!(refusal(b"").contains("does not begin with HPTRACE"));
    assert!(refusal(b"HPTRACE\x02").contains("version 2"));
    assert!(refusal(b"HPTRACE\x01\xff\xff\xff\xff12345678").contains("header is damaged"));
    let mut bytes = written(&[]);
    bytes.push(0);
    let error = TraceReader::new(&bytes[..]).unwrap().find_map(Result::err).unwrap();
    assert!(error.to_string().contains("follow the summary"), "{error}");
    let mut long = written(&[]);
    let block = long.len()
        - 13
        - serde_json::to_vec(&Summary { lost: 3, elapsed_ns: 7, ..Summary::default() })
            .unwrap()
            .len();
    long[block + 4] = 0xff;
    let error = TraceReader::new(&long[..]).unwrap().find_map(Result::err).unwrap();
    assert!(matches!(error, Error::BlockBytes { .. }), "{error}");
}

#[test]
fn a_request_needs_its_file() {
    let mut writer = TraceWriter::new(Vec::new(), &header()).unwrap();
    assert!(writer.event(&sequential(0)).is_err());
}
