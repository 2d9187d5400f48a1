use super::*;
use crate::{Access, Request};
use std::io::Cursor;

fn all(text: &str) -> Result<(Format, Vec<Event>)> {
    let (format, events) = read(Cursor::new(text.to_owned().into_bytes()))?.events();
    Ok((format, events.collect::<Result<Vec<_>>>()?))
}

fn requests(events: &[Event]) -> Vec<&Request> {
    let requests = events.iter().filter_map(|event| match event {
        Event::Request(request) => Some(request),
        _ => None,
    });
    requests.collect()
}

fn files(events: &[Event]) -> Vec<&str> {
    let names = events.iter().filter_map(|event| match event {
        Event::File(file) => Some(file.name.as_str()),
        _ => None,
    });
    names.collect()
}

#[test]
fn tables_are_recognised_and_agree() {
    use Table::*;
    for (text, table, response) in [
        ("time_ns,op,offset,bytes\n5000000,r,8192,4096\n6000000,W,0,512\n", Plain, None),
        (
            "128166372003061629,hm,1,Read,8192,4096,1331\n128166372003071629,hm,1,Write,0,512,7\n",
            Msr,
            Some(133_100),
        ),
        ("0,16,4096,R,0.551706\n0,0,512,w,0.552706\n", Spc, None),
        (
            "Timestamp,Response,IOType,LUN,Offset,Size\n1455592866.000000000,0.000133100,R,0,8192,4096\n1455592866.001,0.1,W,0,0,512\n",
            Systor,
            Some(133_100),
        ),
        ("3,R,8192,4096,1577808000000046\n3,W,0,512,1577808000001046\n", Alibaba, None),
    ] {
        let (format, events) = all(text).unwrap();
        assert_eq!(format, Format::Delimited(table));
        let requests = requests(&events);
        assert_eq!(files(&events).len(), 1);
        let shown: Vec<_> =
            requests.iter().map(|one| (one.at_ns, one.access, one.offset, one.bytes)).collect();
        assert_eq!(
            shown,
            [(0, Access::Read, Some(8192), 4096), (1_000_000, Access::Write, Some(0), 512)],
            "{table:?}"
        );
        assert_eq!(requests[0].duration_ns, response, "{table:?}");
    }
    let (format, events) = all("0,4096,512\n1,0,1024\n").unwrap();
    assert_eq!(format, Format::Delimited(FioLog1));
    assert_eq!(requests(&events)[1].access, Access::Write);
}

#[test]
fn faults_name_their_line() {
    for (text, word) in [
        ("", "empty"),
        ("hello\n", "no known trace format"),
        ("1,r,0\n", "line 1: 3 fields"),
        ("1,r,0,1\n2,x,0,1\n", "line 2: op 'x'"),
        ("1,r,18446744073709551615,4096\n", "line 1: a request of 4096 bytes"),
        ("0,36028797018963968,4096,R,0.5\n", "line 1: LBA"),
        ("128166372003061629,hm,1,Read,0,4096,x\n", "line 1: ResponseTime 'x'"),
        ("fio version 3 iolog\n0 /a add\n0 /b read 0 512\n", "line 3: the file '/b'"),
        ("fio version 9 iolog\n", "first line"),
        ("1 1700000000.000001 read(3, \"\", 1) = 0 <0.1>\nnonsense\n", "line 2: 'nonsense'"),
        ("1 1700000000.000001 read(3, \"a\", 1) = 5 <0.1>\n", "line 1: read moves 5 of 1"),
    ] {
        let error = all(text).unwrap_err().to_string();
        assert!(error.contains(word), "{text:?}: {error}");
    }
}

#[test]
fn requests_are_sorted_and_begin_at_zero() {
    let (_, events) = all("7,r,0,512\n5,r,512,512\n9,r,1024,512\n").unwrap();
    let times: Vec<_> = requests(&events).iter().map(|one| (one.at_ns, one.offset)).collect();
    assert_eq!(times, [(0, Some(512)), (2, Some(0)), (4, Some(1024))]);
}

/// Debian's strace 6.1 prints this.
#[test]
fn strace_follows_descriptors_and_interrupted_calls() {
    let text = r#"100 1700000000.000000 openat(AT_FDCWD, "/d/log", O_WRONLY|O_CREAT|O_APPEND|O_DSYNC|O_TRUNC, 0644) = 3 <0.000020>
100 1700000000.001000 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, child_tid=0x7f}, 88) = 101 <0.000030>
100 1700000000.002000 write(3, "ab, \"c"..., 8192) = 8192 <0.000100>
101 1700000000.003000 fdatasync(3 <unfinished ...>
100 1700000000.003500 write(3, "x", 100) = 100 <0.000010>
101 1700000000.004000 <... fdatasync resumed>) = 0 <0.001000>
100 1700000000.005000 openat(AT_FDCWD, "/d/data", O_RDWR|O_DIRECT) = 4 <0.000020>
100 1700000000.006000 lseek(4, 8192, SEEK_SET) = 8192 <0.000001>
100 1700000000.007000 read(4, "..."..., 4096) = 4096 <0.000200>
100 1700000000.008000 dup(4) = 5 <0.000001>
100 1700000000.009000 read(5, "..."..., 4096) = 4096 <0.000200>
100 1700000000.010000 fork() = 102 <0.000100>
102 1700000000.011000 pwrite64(4, "..."..., 512, 65536) = 512 <0.000200>
102 1700000000.012000 write(1, "hello\n", 6) = 6 <0.000010>
102 1700000000.013000 read(9, "z", 1) = -1 EBADF (Bad file descriptor) <0.000001>
102 1700000000.014000 close(4) = 0 <0.000001>
102 1700000000.015000 +++ exited with 0 +++
100 1700000000.016000 read(4, ""..., 4096) = 0 <0.000010>
"#;
    let (format, events) = all(text).unwrap();
    assert_eq!(format, Format::Strace);
    let moved: Vec<_> = requests(&events)
        .into_iter()
        .filter(|one| matches!(one.access, Access::Read | Access::Write | Access::SyncData))
        .map(|one| (one.at_ns / 1000, one.file, one.access, one.offset, one.bytes, one.thread))
        .collect();
    assert_eq!(
        moved,
        [
            (2000, 0, Access::Write, Some(0), 8192, Some(0)),
            (3000, 0, Access::SyncData, None, 0, Some(1)),
            (3500, 0, Access::Write, Some(8192), 100, Some(0)),
            (7000, 1, Access::Read, Some(8192), 4096, Some(0)),
            (9000, 1, Access::Read, Some(12288), 4096, Some(0)),
            (11000, 1, Access::Write, Some(65536), 512, Some(2)),
            (13000, 3, Access::Read, None, 1, Some(2)),
            (16000, 1, Access::Read, Some(16384), 4096, Some(0)),
        ]
    );
    let all = requests(&events);
    let sync = all.iter().find(|one| one.access == Access::SyncData).unwrap();
    assert_eq!(sync.duration_ns, Some(1_000_000));
    assert!(all[1].open.dsync && all[1].open.append && !all[1].open.direct);
    assert!(all.iter().any(|one| one.open.direct));
}

fn record(big: bool, time: u64, sector: u64, bytes: u32, action: u32, pid: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut u32s = |values: &[u32]| {
        for value in values {
            out.extend(if big { value.to_be_bytes() } else { value.to_le_bytes() });
        }
    };
    let halves = |value: u64| {
        let (high, low) = ((value >> 32) as u32, value as u32);
        if big { [high, low] } else { [low, high] }
    };
    u32s(&[0x6561_7407, 1]);
    u32s(&halves(time));
    u32s(&halves(sector));
    u32s(&[bytes, action, pid, 7 << 20 | 3, 0, 0]);
    out
}

const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;

#[test]
fn blktrace_merges_processors_and_byte_orders() {
    let queue = |big, time, sector, bytes, kind| record(big, time, sector, bytes, 1 | kind, 42);
    let end = |big, time, sector, bytes, kind| record(big, time, sector, bytes, 8 | kind, 0);
    for big in [false, true] {
        let first = [queue(big, 1000, 8, 4096, READ), end(big, 9000, 8, 8192, READ)].concat();
        // Merged with the first, and a write at the same place that never ends.
        let second = [queue(big, 2000, 16, 4096, READ), queue(big, 3000, 8, 4096, WRITE)].concat();
        let sources: Vec<Box<dyn std::io::BufRead + Send>> =
            vec![Box::new(Cursor::new(second)), Box::new(Cursor::new(first.clone()))];
        let all: Vec<Event> =
            events(blktrace::Blktrace::new(sources).unwrap()).collect::<Result<_>>().unwrap();
        let shown: Vec<_> = requests(&all)
            .iter()
            .map(|one| (one.at_ns, one.access, one.offset, one.duration_ns))
            .collect();
        assert_eq!(
            shown,
            [
                (0, Access::Read, Some(4096), Some(8000)),
                (1000, Access::Read, Some(8192), Some(7000)),
                (2000, Access::Write, Some(4096), None),
            ]
        );
        assert_eq!(files(&all), ["7:3"]);
        let cut = Cursor::new(first[..first.len() - 5].to_vec());
        let error = read(cut).unwrap().events().1.collect::<Result<Vec<_>>>().unwrap_err();
        assert!(error.to_string().contains("byte 48: the file ends"), "{error}");
        let mut wrong = first.clone();
        wrong[48..52].fill(0);
        let error =
            read(Cursor::new(wrong)).unwrap().events().1.collect::<Result<Vec<_>>>().unwrap_err();
        assert!(error.to_string().contains("byte 48: no record"), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "((fio version [23] iolog|[0-9]{1,4} [0-9.]{1,6} [a-z0-9]{1,6}\\([0-9a-z<>\",\\[\\]{}=. ]{0,30}\\) = [0-9-]{1,3}|[0-9rwRW.,]{0,30})\n){0,4}") {
        let _ = all(&text);
    }

    #[test]
    fn no_bytes_panic(mut bytes in proptest::collection::vec(proptest::arbitrary::any::<u8>(), 0..300), big: bool) {
        let magic: u32 = 0x6561_7407;
        for at in (0..bytes.len().saturating_sub(4)).step_by(48) {
            bytes[at..at + 4].copy_from_slice(&if big { magic.to_be_bytes() } else { magic.to_le_bytes() });
            if at + 48 <= bytes.len() {
                bytes[at + 46..at + 48].fill(0);
            }
        }
        if let Ok((_, events)) = read(Cursor::new(bytes)).map(Trace::events) {
            events.for_each(drop);
        }
    }
}
