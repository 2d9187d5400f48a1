//! The table: every fault, how it is tried, and the state afterwards. Each section has a file; this
//! one has what several use.

use crate::fuse::Asked::{Create, Read, Remove, Rename, Sync, Write};
use crate::fuse::Fault;
use crate::fuse::Instead::{Error, Flip, Half, Hang, Hold, Lose, Misplace, Tear};
use crate::play::Sink::{Full as FullSink, Unread};
use crate::play::State::{
    Gone, Hangs, Long, Mapped, Read as HasRead, Said, Set, TestFile, Written,
};
use crate::play::Step::{
    Do, Ended, Fails, Met, Run, Signal, Start, Stop, Storm, Stutter, Together, Until,
};
use crate::play::{By, Ends, INTERRUPTED, KILLED, PLAIN, Row, Stops, UNHARMED};
use crate::play::{failed_points, fails, no_result, play, refused, run, well};
use crate::stage::Given::*;
use crate::stage::{DISK, Limit};
use libc::{EDQUOT, EIO, ENOSPC, EROFS, SIGHUP, SIGINT, SIGKILL, SIGTERM};

pub struct Section {
    pub title: &'static str,
    pub promise: &'static str,
    pub rows: &'static [(&'static str, Row)],
}

macro_rules! section {
    ($title:literal, $promise:literal, $($name:ident = $row:expr),+ $(,)?) => {
        pub static SECTION: Section =
            Section { title: $title, promise: $promise, rows: &[$((stringify!($name), $row)),+] };

        $(#[test]
        fn $name() {
            play_row(&SECTION, stringify!($name));
        })+
    };
}

mod corruption;
mod disturbed;
mod endings;
mod failing;
mod held;
mod input;
mod limits;
mod names;
mod others;
mod outputs;
mod ownership;
mod second;
mod targets;
mod together;

/// The sections in the order of the page.
pub static TABLE: &[&Section] = &[
    &outputs::SECTION,
    &targets::SECTION,
    &held::SECTION,
    &failing::SECTION,
    &corruption::SECTION,
    &limits::SECTION,
    &disturbed::SECTION,
    &endings::SECTION,
    &ownership::SECTION,
    &together::SECTION,
    &names::SECTION,
    &others::SECTION,
    &input::SECTION,
    &second::SECTION,
];

fn play_row(section: &Section, name: &str) {
    let (name, row) =
        section.rows.iter().find(|(one, _)| *one == name).expect("a row of the table");
    play(name, row);
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const fn fault(asked: crate::fuse::Asked, from: u64, instead: crate::fuse::Instead) -> Fault {
    Fault { asked, from, instead }
}

const NOBODY: By = By { words: "as a user who owns nothing", nobody: true, ..PLAIN };

const fn under(words: &'static str, starter: &'static [&'static str]) -> By {
    By { words, starter, ..PLAIN }
}

// In a mount namespace without one of the kernel's file systems.

const NO_PROC: &[&str] =
    &["unshare", "--mount", "sh", "-c", "umount --lazy /proc && exec \"$@\"", "sh"];
const NO_SYS: &[&str] =
    &["unshare", "--mount", "sh", "-c", "umount --lazy /sys && exec \"$@\"", "sh"];
const NO_DEV: &[&str] =
    &["unshare", "--mount", "sh", "-c", "mount -t tmpfs dev /dev && exec \"$@\"", "sh"];

const IN_GROUP: By = under(
    "in a control group with this limit",
    &["sh", "-c", "echo $$ >\"$0\" && exec \"$@\"", "{group}/cgroup.procs"],
);

const fn stop(at: Fault, line: &'static str) -> crate::play::Step {
    Stop { fs: "fs", at, line, ends: well(&["a run was left out and repeated"]) }
}

// Lines of every language on a file `mine` of the user's.

const READ_MINE: &[&str] = &[
    "run mine --buffered --bytes 64k --repeats 1 --max-repeats 1",
    "sweep mine --buffered --request 4k,8k --bytes 64k --repeats 1 --max-repeats 1",
    "fio --name=a --filename=mine --rw=read",
    "iozone -i 1 -r 64k -s 1m -f mine",
    "sqlio -kR -frandom --runtime 20ms -b64 -BY mine",
    "diskspd -d1 -W0 -b64K mine",
];

const WRITE_MINE: &[&str] = &[
    "run mine --op write",
    "sweep mine --op read,mix",
    "fio --name=a --filename=mine --rw=write",
    "iozone -i 0 -r 64k -s 1m -f mine",
    "sqlio -kW -frandom -s1 -BY mine",
    "diskspd -d1 -W0 -w100 mine",
    "compare --a mine --b mine --op write",
    "tune mine --op write --knob depth=8 --yes",
];

// The same on a device.

const WRITE_DISK: &[&str] = &[
    "run {disk} --op write",
    "sweep {disk} --op read,mix",
    "fio --name=a --filename={disk} --rw=write",
    "iozone -i 0 -r 64k -s 1m -f {disk}",
    "sqlio -kW -frandom -s1 -BY {disk}",
    "diskspd -d1 -W0 -w100 {disk}",
    "compare --a {disk} --b {disk} --op write",
    "tune {disk} --op write --knob depth=8 --yes",
];

const DESTROY_DISK: &[&str] = &[
    "run {disk} --op write --bytes 64k --destroy-data {disk}",
    "sweep {disk} --op write --request 4k,64k --bytes 64k --destroy-data {disk}",
    "study {disk} --quick --budget 5s --only unbuffered --destroy-data {disk} --output out",
    "stack {disk} --budget 5s --destroy-data {disk}",
    "compare --a {disk} --b {disk} --op write --destroy-data {disk}",
    "tune {disk} --op write --knob depth=8 --yes --destroy-data {disk}",
    "fio --name=a --filename={disk} --rw=write --destroy-data={disk}",
    "iozone -i 0 -r 64k -s 1m -f {disk} --destroy-data {disk}",
    "sqlio -kW -frandom --runtime 20ms -BY -b64 {disk} --destroy-data {disk}",
    "diskspd -d1 -W0 -w100 -b64K {disk} --destroy-data {disk}",
];

const DESTROY_DISK_ALL: &[&str] = &[
    "run {disk} --op write --bytes 64k --destroy-data {disk} --destroy-signature",
    "stack {disk} --budget 5s --destroy-data {disk} --destroy-signature",
    "compare --a {disk} --b {disk} --op write --destroy-data {disk} --destroy-signature",
    "tune {disk} --op write --knob depth=8 --yes --destroy-data {disk} --destroy-signature",
    "study {disk} --quick --budget 5s --destroy-data {disk} --destroy-signature --output out",
    "fio --name=a --filename={disk} --rw=write --destroy-data={disk} --destroy-signature",
    "iozone -i 0 -r 64k -s 1m -f {disk} --destroy-data {disk} --destroy-signature",
    "sqlio -kW -frandom -s1 -BY -b64 {disk} --destroy-data {disk} --destroy-signature",
    "diskspd -d1 -W0 -w100 -b64K {disk} --destroy-data {disk} --destroy-signature",
];

// Lines of every language that write a document, to an output that is called `out.json`.

const DOCUMENTS: &[&str] = &[
    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=out.json",
    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --output=out.json --output-format=json",
    "iozone -i 0 -r 64k -s 1m -f twin:gateway-1997 --json out.json",
    "diskspd -d1 -W0 -b64K --json out.json twin:gateway-1997",
    "sqlio -kR -s1 -b64 --json out.json twin:gateway-1997",
    "postmark pm --json out.json",
    "tune twin:gateway-1997 --bytes 1m --knob depth=8 --yes --output out.json",
    "compare --a twin:gateway-1997 --b twin:gateway-1997,disks=2 --runtime 10ms --html out.json",
    "compare --a twin:gateway-1997 --b twin:gateway-1997,disks=2 --runtime 10ms --csv out.json",
];

const COMPARISONS: &[&str] = &[
    "tune twin:gateway-1997 --knob depth=8",
    "tune twin:gateway-1997 --bytes 1m --knob depth=8 --yes",
    "compare --a twin:gateway-1997 --b twin:gateway-1997,disks=2 --runtime 10ms",
    "stack twin:gateway-1997",
];

const BASELINE: &[&str] = &["sweep twin:gateway-1997 --runtime 10ms --history history"];

const CHECK: &[&str] = &["check twin:gateway-1997 --history history"];

const POSTMARK: crate::stage::Given =
    Text("pm", "set location {here}\nset number 20\nset transactions 20\nrun\nquit\n");

const STUDY: &str = "study twin:gateway-1997 --quick --only memory --output out";

// A directory `here` in each language: files are made in it, and go.

const IN_HERE: &[&str] = &[
    "run {here} --size 1m --buffered --bytes 64k --repeats 1 --max-repeats 1",
    "sweep {here} --size 1m --buffered --request 4k,8k --bytes 64k --repeats 1 --max-repeats 1",
    "metadata {here} --files 20 --rounds 1",
    "fio --name=a --directory={here} --size=1m --rw=randrw --cleanup",
    "iozone -i 0 -i 1 -r 64k -s 256k -f {here}/iozone.tmp",
    "sqlio -kW -frandom --runtime 20ms -BY -b64 --size 1m {here}",
    "diskspd -d1 -W0 -w50 -c1M -b64K {here}",
    "postmark pm",
];
