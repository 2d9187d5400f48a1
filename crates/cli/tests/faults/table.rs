//! The table: every fault, how it is tried, and what must be so afterwards.
//!
//! A row is a test of its own name. It says what stands in its directory, what is done, and what may be left; whatever it
//! does not name must be as it was. `play.rs` plays it, `page.rs` makes docs/reliability.md from it.

use crate::fuse::Asked::{Create, Read, Remove, Rename, Sync, Write};
use crate::fuse::Fault;
use crate::fuse::Instead::{Error, Flip, Half, Hang, Hold, Lose, Misplace};
use crate::play::Sink::{Full as FullSink, Unread};
use crate::play::State::{Gone, Hangs, Long, Mapped, Read as HasRead, Said, TestFile, Written};
use crate::play::Step::{Do, Ended, Fails, Met, Run, Signal, Start, Stop, Storm, Together, Until};
use crate::play::{By, Ends, INTERRUPTED, KILLED, PLAIN, Row, UNHARMED};
use crate::play::{failed_points, fails, no_result, play, refused, run, well};
use crate::stage::Given::*;
use crate::stage::{DISK, Limit};
use libc::{EDQUOT, EIO, ENOSPC, EROFS, SIGHUP, SIGINT, SIGKILL, SIGTERM};

/// Rows that try one promise.
pub struct Section {
    pub name: &'static str,
    pub title: &'static str,
    pub promise: &'static str,
    pub rows: &'static [(&'static str, Row)],
}

/// Makes the table, and a test of each row.
macro_rules! faults {
    ($($section:ident($title:literal, $promise:literal, [$($name:ident = $row:expr),+ $(,)?])),+ $(,)?) => {
        /// All of them.
        pub static TABLE: &[Section] = &[$(Section {
            name: stringify!($section),
            title: $title,
            promise: $promise,
            rows: &[$((stringify!($name), $row)),+],
        }),+];

        $(mod $section {
            $(#[test]
            fn $name() {
                super::play_row(stringify!($section), stringify!($name));
            })+
        })+
    };
}

fn play_row(section: &str, name: &str) {
    let section = TABLE.iter().find(|one| one.name == section).expect("a section of the table");
    let (name, row) = section.rows.iter().find(|(one, _)| *one == name).expect("a row of the table");
    play(name, row);
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A fault of a FUSE file system from an offset of each file on.
const fn fault(asked: crate::fuse::Asked, from: u64, instead: crate::fuse::Instead) -> Fault {
    Fault { asked, from, instead }
}

/// As a user who owns nothing.
const NOBODY: By = By { words: "as a user who owns nothing", nobody: true, ..PLAIN };

/// Under another program.
const fn under(words: &'static str, starter: &'static [&'static str]) -> By {
    By { words, starter, ..PLAIN }
}

/// In a control group of the stage.
const IN_GROUP: By = under(
    "in a control group with this limit",
    &["sh", "-c", "echo $$ >\"$0\" && exec \"$@\"", "{group}/cgroup.procs"],
);

/// A command that is stopped within a run, and says so.
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
];

const DESTROY_DISK: &[&str] = &[
    "run {disk} --op write --bytes 64k --destroy-data {disk}",
    "sweep {disk} --op write --request 4k,64k --bytes 64k --destroy-data {disk}",
    "study {disk} --quick --budget 5s --only unbuffered --destroy-data {disk} --output out",
    "fio --name=a --filename={disk} --rw=write --destroy-data={disk}",
    "iozone -i 0 -r 64k -s 1m -f {disk} --destroy-data {disk}",
    "sqlio -kW -frandom --runtime 20ms -BY -b64 {disk} --destroy-data {disk}",
    "diskspd -d1 -W0 -w100 -b64K {disk} --destroy-data {disk}",
];

/// Two ways to confirm, the second of which confirms signatures too.
const DESTROY_DISK_ALL: &[&str] = &[
    "run {disk} --op write --bytes 64k --destroy-data {disk} --destroy-signature",
    "stack {disk} --budget 5s --destroy-data {disk} --destroy-signature",
    "compare --a {disk} --b {disk} --op write --destroy-data {disk} --destroy-signature",
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
];

/// A short session of PostMark.
const POSTMARK: crate::stage::Given =
    Text("pm", "set location {here}\nset number 20\nset transactions 20\nrun\nquit\n");

/// A study that takes no time.
const STUDY: &str = "study twin:gateway-1997 --quick --only memory --output out";

// A directory `here` in each language: files are made in it, and go.

const IN_HERE: &[&str] = &[
    "run {here} --size 1m --buffered --bytes 64k --repeats 1 --max-repeats 1",
    "sweep {here} --size 1m --buffered --request 4k,8k --bytes 64k --repeats 1 --max-repeats 1",
    "metadata {here} --files 20 --rounds 1",
    "fio --name=a --directory={here} --size=1m --rw=randrw",
    "iozone -i 0 -i 1 -r 64k -s 256k -f {here}/iozone.tmp",
    "sqlio -kW -frandom --runtime 20ms -BY -b64 --size 1m {here}",
    "diskspd -d1 -W0 -w50 -c1M -b64K {here}",
    "postmark pm",
];

faults![
    outputs(
        "Outputs",
        "An output never replaces what halfpower did not make, never what is measured, and follows no link to a file. It is tried \
 before anything is measured. If it cannot be written in the end, the answer is printed all the same and the document is \
 kept among the temporary files.",
        [
            a_users_file = Row {
                fault: "the output's name is a file of the user's",
                given: &[POSTMARK, File("out.json")],
                steps: &[run(DOCUMENTS, refused(&["out.json", "--force"]))],
                ..UNHARMED
            },
            a_users_file_by_force = Row {
                fault: "the same with --force, and again without: the second replaces what the first made",
                given: &[POSTMARK, File("out.json")],
                steps: &[
                    run(
                        &[
                            "fio --force --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=out.json",
                            "postmark --force pm --json out.json",
                            "sqlio --force -kR -s1 -b64 --json out.json twin:gateway-1997",
                        ],
                        well(&[])
                    ),
                    run(DOCUMENTS, well(&[])),
                ],
                leaves: &["out.json"],
            },
            a_character_device = Row {
                fault: "the output is a character device: a node of /dev/null",
                given: &[POSTMARK, CharNode("out.json", 3)],
                steps: &[run(DOCUMENTS, well(&[]))],
                ..UNHARMED
            },
            a_full_device = Row {
                fault: "the output takes nothing: a node of /dev/full",
                given: &[POSTMARK, CharNode("out.json", 7), Directory("tmp")],
                steps: &[run(DOCUMENTS, fails(&["No space left", "tmp/halfpower-"]))],
                leaves: &["tmp/halfpower-*"],
            },
            a_block_device = Row {
                fault: "the output is a block device",
                given: &[POSTMARK, Disk("disk"), BlockNode("out.json", "disk")],
                steps: &[run(DOCUMENTS, refused(&["out.json", "a device that keeps data"]))],
                ..UNHARMED
            },
            a_pipe = Row {
                fault: "the output is a named pipe: its reader gets the document, and it stays a pipe",
                given: &[ReadPipe("out.json")],
                steps: &[
                    run(&["fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=out.json"], well(&[])),
                    Until(Long("out.json.read", 1000)),
                ],
                leaves: &["out.json.read"],
            },
            a_link_to_a_file = Row {
                fault: "the output is a symbolic link to a file of the user's",
                given: &[POSTMARK, File("precious"), Link("out.json", "precious")],
                steps: &[run(DOCUMENTS, refused(&["out.json", "symbolic link"]))],
                ..UNHARMED
            },
            a_link_to_nothing = Row {
                fault: "the output is a symbolic link to nothing",
                given: &[POSTMARK, Link("out.json", "absent")],
                steps: &[run(DOCUMENTS, refused(&["out.json", "symbolic link"]))],
                ..UNHARMED
            },
            a_link_to_a_disk = Row {
                fault: "a file of a study's or report's directory is a symbolic link to a block device",
                given: &[Disk("disk"), Directory("out"), Link("out/report.html", "disk")],
                steps: &[run(&[STUDY], refused(&["report.html", "symbolic link"]))],
                ..UNHARMED
            },
            a_directory = Row {
                fault: "the output is a directory",
                given: &[POSTMARK, Directory("out.json")],
                steps: &[run(DOCUMENTS, refused(&["out.json", "directory"]))],
                ..UNHARMED
            },
            no_directory = Row {
                fault: "the output's directory is not there",
                given: &[],
                steps: &[run(
                    &[
                        "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=no/out.json",
                        "iozone -i 0 -s 64 --json no/out.json",
                        "diskspd -d1 -W0 --json no/out.json twin:gateway-1997",
                        "sqlio -kR -s1 --json no/out.json twin:gateway-1997",
                        "postmark --json no/out.json",
                    ],
                    refused(&["no/out.json", "no directory"])
                )],
                ..UNHARMED
            },
            a_studys_directory_is_a_file = Row {
                fault: "the directory of a study is a file of the user's",
                given: &[File("out")],
                steps: &[run(
                    &[STUDY, "study twin:gateway-1997 --quick --only memory --output out/below"],
                    refused(&["--output", "directory"])
                )],
                ..UNHARMED
            },
            a_studys_file_is_the_users = Row {
                fault: "a file of a study's directory is the user's",
                given: &[Directory("out"), File("out/points.csv")],
                steps: &[run(&[STUDY], refused(&["points.csv", "--force"]))],
                ..UNHARMED
            },
            a_read_only_place = Row {
                fault: "the output's file system is read-only",
                given: &[Tmpfs("ro", "1m"), ReadOnly("ro")],
                steps: &[run(
                    &[
                        "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=ro/out.json",
                        "iozone -i 0 -s 64 --json ro/out.json",
                        "diskspd -d1 -W0 --json ro/out.json twin:gateway-1997",
                        "sqlio -kR -s1 --json ro/out.json twin:gateway-1997",
                        "study twin:gateway-1997 --quick --only memory --output ro/out",
                    ],
                    refused(&["ro/out", "Read-only file system"])
                )],
                ..UNHARMED
            },
            a_forbidden_place = Row {
                fault: "the output's directory may not be written by this user",
                given: &[],
                steps: &[Run(
                    NOBODY,
                    &[
                        "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json={here}/out.json",
                        "diskspd -d1 -W0 --json {here}/out.json twin:gateway-1997",
                        "study twin:gateway-1997 --quick --only memory --output {here}/out",
                    ],
                    refused(&["out", "Permission denied"])
                )],
                ..UNHARMED
            },
            a_full_place = Row {
                fault: "the output's file system is full",
                given: &[Tmpfs("full", "64k"), Full("full"), Directory("tmp")],
                steps: &[run(
                    &[
                        "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=full/out.json",
                        "diskspd -d1 -W0 --json full/out.json twin:gateway-1997",
                    ],
                    fails(&["full/out.json", "No space left", "tmp/halfpower-"])
                )],
                leaves: &["tmp/halfpower-*"],
            },
            a_file_size_limit = Row {
                fault: "the limit on file sizes (ulimit -f) is smaller than the document",
                given: &[Directory("tmp")],
                steps: &[Run(
                    under("under prlimit --fsize=3000", &["prlimit", "--fsize=3000"]),
                    &[
                        "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=out.json",
                        "sqlio -kR -s1 --json out.json twin:gateway-1997",
                    ],
                    fails(&["out.json", "File too large"])
                )],
                ..UNHARMED
            },
            what_is_measured = Row {
                fault: "the output is the file that is measured, under its own name or another, even with --force",
                given: &[File("mine"), HardLink("again", "mine")],
                steps: &[run(
                    &[
                        "fio --force --name=a --filename=mine --rw=read --json=mine",
                        "fio --force --name=a --filename=mine --rw=read --json=again",
                        "iozone --force -i 1 -r 64k -s 1m -f mine --json again",
                        "iozone --force -i 1 -r 64k -s 1m -f mine --html mine",
                        "diskspd --force -d1 -W0 -b64K --json again mine",
                        "sqlio --force -kR -s1 -b64 --json again mine",
                    ],
                    refused(&["what is measured"])
                )],
                ..UNHARMED
            },
            what_lies_under_it = Row {
                fault: "the output is the file under the loop device that is measured, even with --force",
                given: &[Disk("disk")],
                steps: &[run(
                    &[
                        "fio --force --name=a --filename={disk} --rw=read --json=disk.img",
                        "iozone --force -i 1 -r 64k -s 1m -f {disk} --json disk.img",
                        "diskspd --force -d1 -W0 -b64K --json disk.img {disk}",
                        "sqlio --force -kR -s1 -b64 --json disk.img {disk}",
                    ],
                    refused(&["what is measured, or lies under it"])
                )],
                ..UNHARMED
            },
            a_job_file = Row {
                fault: "the output is the file of jobs that is read",
                given: &[Text("jobs", "[a]\nfilename=twin:gateway-1997\nsize=1m\nrw=read\n")],
                steps: &[run(&["fio --force jobs --json=jobs", "fio --force jobs --output=jobs"], refused(&["jobs"]))],
                ..UNHARMED
            },
            a_users_log = Row {
                fault: "a log of fio's language has the name of a file of the user's",
                given: &[File("l_bw.1.log")],
                steps: &[run(
                    &["fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --write_bw_log=l"],
                    refused(&["l_bw.1.log", "--force"])
                )],
                ..UNHARMED
            },
            a_verification_log = Row {
                fault: "the log of a verifying run is a file that exists",
                given: &[File("log"), File("mine")],
                steps: &[run(
                    &[
                        "run {here} --size 1m --buffered --op write --bytes 64k --verify --verify-log log",
                        "run mine --destroy-data mine --buffered --op write --bytes 64k --verify --verify-log log",
                    ],
                    refused(&["log", "name a new file"])
                )],
                ..UNHARMED
            },
            a_comparisons_output = Row {
                fault: "an output of a comparison or of the history is a file of the user's",
                given: &[
                    File("out.html"),
                    Text("results.csv", "speed\n1\n2\n3\n"),
                    Text("others.csv", "speed\n2\n3\n4\n"),
                ],
                steps: &[run(
                    &[
                        "compare results.csv others.csv --html out.html",
                        "compare results.csv others.csv --csv out.html",
                        "compare results.csv others.csv --csv results.csv",
                        "compare --force results.csv others.csv --csv others.csv",
                    ],
                    refused(&["--force|what is measured|what is compared|is read", "out.html|results.csv|others.csv"])
                )],
                ..UNHARMED
            },
            a_history_that_is_none = Row {
                fault: "the history is a file of the user's, a directory, read-only, full, or somebody else's: the result is given all the same, and that it is not kept is said",
                given: &[
                    Noise("noise"),
                    Directory("directory"),
                    Tmpfs("ro", "1m"),
                    ReadOnly("ro"),
                    Tmpfs("full", "64k"),
                    Full("full"),
                    Directory("tmp"),
                ],
                steps: &[
                    run(
                        &[
                            "run twin:gateway-1997 --runtime 10ms --history noise",
                            "run twin:gateway-1997 --runtime 10ms --history directory",
                            "run twin:gateway-1997 --runtime 10ms --history ro/history",
                            "run twin:gateway-1997 --runtime 10ms --history full/history",
                            "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --history=noise",
                        ],
                        well(&["this result is not in the history"])
                    ),
                    run(
                        &["history --history noise", "history --history directory", "check . --history noise"],
                        no_result(&["noise|directory"])
                    ),
                ],
                leaves: &["full/history"]
            },
            appears_meanwhile = Row {
                fault: "a file of the user's appears under the output's name during the run",
                given: &[File("mine"), Directory("tmp")],
                steps: &[
                    Start("fio --name=a --filename=mine --rw=read --time_based --runtime=60 --json=out.json"),
                    Until(HasRead(4 * MIB)),
                    Do(Text("out.json", "the user's own words")),
                    Signal(SIGINT),
                    Ended(Ends { codes: &[1, 130], words: &[], failed_points: false }),
                ],
                leaves: &["out.json"],
            },
            nobody_reads = Row {
                fault: "standard output is a pipe whose reader has gone: the command ends quietly",
                given: &[POSTMARK],
                steps: &[
                    Run(By { words: "into a pipe without a reader", stdout: Unread, ..PLAIN }, IN_HERE, well(&[])),
                    Run(
                        By { words: "into a pipe without a reader", stdout: Unread, ..PLAIN },
                        &["twin list", "fio --help"],
                        well(&[])
                    ),
                ],
                ..UNHARMED
            },
            a_full_standard_output = Row {
                fault: "standard output is full",
                given: &[POSTMARK],
                steps: &[Run(
                    By { words: "into /dev/full", stdout: FullSink, ..PLAIN },
                    IN_HERE,
                    fails(&["No space left"])
                )],
                ..UNHARMED
            },
            a_closed_standard_output = Row {
                fault: "standard output is closed",
                given: &[],
                steps: &[Run(
                    under("with >&-", &["sh", "-c", "exec \"$0\" \"$@\" >&-"]),
                    &[
                        "run twin:gateway-1997 --runtime 10ms --json",
                        "twin list",
                        "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m",
                    ],
                    well(&[])
                )],
                ..UNHARMED
            },
            nobody_can_be_told = Row {
                fault: "standard error is full, or a pipe whose reader has gone",
                given: &[],
                steps: &[
                    Run(
                        By { words: "with errors into /dev/full", stderr: FullSink, ..PLAIN },
                        &["run absent", "fio absent", "diskspd -d1 absent", "report absent"],
                        refused(&[])
                    ),
                    Run(
                        By { words: "with errors into a pipe without a reader", stderr: Unread, ..PLAIN },
                        &["run absent", "fio absent", "diskspd -d1 absent", "report absent"],
                        refused(&[])
                    ),
                ],
                ..UNHARMED
            },
        ]
    ),
    targets(
        "Targets",
        "Existing data is only read, unless --destroy-data names it again. A device or file that is mounted, held or under something \
 else is never written; one that bears a signature only with --destroy-signature. Everything is checked before the first byte \
 is written.",
        [
            a_users_file_is_read = Row {
                fault: "the target is a file of the user's: reading changes nothing",
                given: &[File("mine")],
                steps: &[run(READ_MINE, well(&[]))],
                ..UNHARMED
            },
            a_users_file = Row {
                fault: "a file of the user's is to be written, and is not named after --destroy-data",
                given: &[File("mine")],
                steps: &[run(WRITE_MINE, refused(&["mine", "--destroy-data"]))],
                ..UNHARMED
            },
            another_name = Row {
                fault: "--destroy-data names another file than the target",
                given: &[File("mine"), File("other")],
                steps: &[run(
                    &[
                        "run mine --op write --destroy-data other",
                        "study mine --quick --budget 5s --destroy-data other",
                        "fio --name=a --filename=mine --rw=write --destroy-data=other",
                        "iozone -i 0 -r 64k -s 1m -f mine --destroy-data other",
                        "sqlio -kW -frandom -s1 -BY mine --destroy-data other",
                        "diskspd -d1 -W0 -w100 mine --destroy-data other",
                    ],
                    refused(&["other|mine"])
                )],
                ..UNHARMED
            },
            a_device = Row {
                fault: "a device is to be written, and is not named after --destroy-data",
                given: &[Disk("disk")],
                steps: &[run(WRITE_DISK, refused(&["--destroy-data"]))],
                ..UNHARMED
            },
            a_second_member = Row {
                fault: "only the first of two members of a stripe is named after --destroy-data",
                given: &[File("mine"), File("other")],
                steps: &[run(
                    &[
                        "run mine other --op write --destroy-data mine",
                        "sweep mine other --op write --destroy-data mine",
                    ],
                    refused(&["other"])
                )],
                ..UNHARMED
            },
            a_request_that_cannot_be = Row {
                fault: "the target may be written, but the workload makes no sense for it",
                given: &[Disk("disk")],
                steps: &[run(
                    &[
                        "run {disk} --op write --request 3000 --destroy-data {disk}",
                        "sweep {disk} --op write --request 4k,3000 --destroy-data {disk}",
                        "run {disk} --op write --request 16m --destroy-data {disk}",
                        "run {disk} --op write --verify --verify-log no/log --destroy-data {disk}",
                        "fio --name=a --filename={disk} --rw=write --bs=3000 --direct=1 --destroy-data={disk}",
                    ],
                    refused(&[])
                )],
                ..UNHARMED
            },
            mounted = Row {
                fault: "the device is mounted",
                given: &[
                    Disk("disk"),
                    Made("disk", "mkfs.ext4 -q -O ^has_journal"),
                    Mounted("at", "disk"),
                    Directory("out")
                ],
                steps: &[
                    run(DESTROY_DISK, refused(&["is mounted on"])),
                    run(DESTROY_DISK_ALL, refused(&["is mounted on"])),
                ],
                ..UNHARMED
            },
            mounted_under_another_node = Row {
                fault: "another node of a mounted device",
                given: &[
                    Disk("under"),
                    Made("under", "mkfs.ext4 -q -O ^has_journal"),
                    Mounted("at", "under"),
                    BlockNode("disk", "under"),
                    Directory("out"),
                ],
                steps: &[run(DESTROY_DISK_ALL, refused(&["is mounted on"]))],
                ..UNHARMED
            },
            the_file_under_a_mount = Row {
                fault: "the file under a mounted loop device",
                given: &[
                    Disk("at"),
                    Made("at", "mkfs.ext4 -q -O ^has_journal"),
                    Mounted("mnt", "at"),
                    Link("disk", "at.img"),
                    Directory("out")
                ],
                steps: &[run(DESTROY_DISK_ALL, refused(&["loop device"]))],
                ..UNHARMED
            },
            a_hard_link_under_a_mount = Row {
                fault: "a hard link to the file under a mounted loop device",
                given: &[
                    Disk("at"),
                    Made("at", "mkfs.ext4 -q -O ^has_journal"),
                    Mounted("mnt", "at"),
                    HardLink("disk", "at.img"),
                    Directory("out")
                ],
                steps: &[run(DESTROY_DISK_ALL, refused(&["loop device"]))],
                ..UNHARMED
            },
            a_second_loop_device = Row {
                fault: "a second loop device over the file of a mounted one",
                given: &[
                    Disk("at"),
                    Made("at", "mkfs.ext4 -q -O ^has_journal"),
                    Mounted("mnt", "at"),
                    DiskOver("disk", "at.img", 0),
                    Directory("out")
                ],
                steps: &[run(DESTROY_DISK_ALL, refused(&["in use|is mounted on"]))],
                ..UNHARMED
            },
            a_loop_device_within = Row {
                fault: "a disk whose file bears a mounted loop device further on",
                given: &[
                    Disk("disk"),
                    DiskOver("part", "disk.img", MIB),
                    Made("part", "mkfs.ext4 -q -O ^has_journal"),
                    Mounted("mnt", "part"),
                    Directory("out"),
                ],
                steps: &[run(DESTROY_DISK_ALL, refused(&["in use|is mounted on"]))],
                ..UNHARMED
            },
            a_mounted_partition = Row {
                fault: "a disk of which a partition is mounted",
                given: &[
                    Partitioned("disk", "part"),
                    Made("part", "mkfs.ext4 -q -O ^has_journal"),
                    Mounted("mnt", "part"),
                    Directory("out"),
                ],
                steps: &[run(DESTROY_DISK_ALL, refused(&["in use|is mounted on"]))],
                ..UNHARMED
            },
            a_partition_of_a_mounted_disk = Row {
                fault: "a partition of a disk that is mounted as a whole",
                given: &[
                    Partitioned("whole", "disk"),
                    Made("whole", "mkfs.ext4 -q -F -O ^has_journal"),
                    Mounted("mnt", "whole"),
                    Directory("out"),
                ],
                steps: &[run(DESTROY_DISK_ALL, refused(&["in use|is mounted on"]))],
                ..UNHARMED
            },
            a_loop_device_beside_a_partition = Row {
                fault: "a partition, where a mounted loop device is on the same bytes of the file under its disk",
                given: &[
                    Partitioned("whole", "disk"),
                    DiskOver("part", "whole.img", MIB),
                    Made("part", "mkfs.ext4 -q -O ^has_journal"),
                    Mounted("mnt", "part"),
                    Directory("out"),
                ],
                steps: &[run(DESTROY_DISK_ALL, refused(&["in use|is mounted on"]))],
                ..UNHARMED
            },
            a_loop_device_over_a_partition = Row {
                fault: "a partition whose disk bears a mounted loop device over the same bytes",
                given: &[
                    Partitioned("whole", "disk"),
                    DiskOver("part", "whole", MIB),
                    Made("part", "mkfs.ext4 -q -O ^has_journal"),
                    Mounted("mnt", "part"),
                    Directory("out"),
                ],
                steps: &[run(DESTROY_DISK_ALL, refused(&["what the loop device"]))],
                ..UNHARMED
            },
            a_loop_device_over_a_mounted_partition = Row {
                fault: "a loop device over the bytes of a mounted partition of the disk that it is on",
                given: &[
                    Partitioned("whole", "part"),
                    Made("part", "mkfs.ext4 -q -O ^has_journal"),
                    Mounted("mnt", "part"),
                    DiskOver("disk", "whole", MIB),
                    Directory("out"),
                ],
                steps: &[run(DESTROY_DISK_ALL, refused(&["is mounted on"]))],
                ..UNHARMED
            },
            mounted_elsewhere = Row {
                fault: "the device is mounted in another mount namespace",
                given: &[
                    Disk("disk"),
                    Made("disk", "mkfs.ext4 -q -O ^has_journal"),
                    MountedElsewhere("disk"),
                    Directory("out")
                ],
                steps: &[run(DESTROY_DISK_ALL, refused(&["in use|is mounted on"]))],
                ..UNHARMED
            },
            a_file_system = Row {
                fault: "the device bears a file system",
                given: &[Disk("disk"), Made("disk", "mkfs.ext4 -q -O ^has_journal"), Directory("out")],
                steps: &[run(
                    DESTROY_DISK,
                    refused(&["ext4 file system|ext2 file system", "--destroy-signature", "wipefs"])
                )],
                ..UNHARMED
            },
            swap_space = Row {
                fault: "the device bears swap space",
                given: &[Disk("disk"), Made("disk", "mkswap -q"), Directory("out")],
                steps: &[run(DESTROY_DISK, refused(&["swap space", "--destroy-signature"]))],
                ..UNHARMED
            },
            a_partition_table = Row {
                fault: "the device bears a partition table",
                given: &[Disk("disk"), Partitions("disk"), Directory("out")],
                steps: &[run(DESTROY_DISK, refused(&["MBR partition table", "--destroy-signature"]))],
                ..UNHARMED
            },
            an_encrypted_volume = Row {
                fault: "the device bears an encrypted volume",
                given: &[Disk("disk"), Bytes("disk", 0, b"LUKS\xba\xbe\0\x02"), Directory("out")],
                steps: &[run(DESTROY_DISK, refused(&["LUKS", "--destroy-signature"]))],
                ..UNHARMED
            },
            a_raid_member = Row {
                fault: "the device is a member of a RAID, of which only its end tells",
                given: &[Disk("disk"), Bytes("disk", DISK - 64 * KIB, &[0xfc, 0x4e, 0x2b, 0xa9]), Directory("out")],
                steps: &[run(DESTROY_DISK, refused(&["md RAID", "--destroy-signature"]))],
                ..UNHARMED
            },
            a_volume_of_lvm = Row {
                fault: "a file holds the image of a volume of LVM",
                given: &[File("disk"), Bytes("disk", 512, b"LABELONE"), Directory("out")],
                steps: &[run(DESTROY_DISK, refused(&["LVM", "--destroy-signature"]))],
                ..UNHARMED
            },
            no_target = Row {
                fault: "the target is not there",
                given: &[],
                steps: &[run(
                    &[
                        "run absent",
                        "sweep absent",
                        "study absent",
                        "metadata absent",
                        "fio absent",
                        "diskspd -d1 absent",
                        "iozone -i 1 -f no/such/place -s 64",
                        "report absent",
                        "verify absent",
                        "stack absent",
                        "compare absent absent",
                        "compare --a absent --b absent",
                        "history --history absent",
                        "check absent --history no/such",
                    ],
                    refused(&["absent|no/such"])
                )],
                ..UNHARMED
            },
            neither_file_nor_device = Row {
                fault: "the target is a named pipe or a character device: nothing waits for its other end",
                given: &[Pipe("pipe"), CharNode("null", 3)],
                steps: &[run(
                    &[
                        "run pipe",
                        "sweep null",
                        "study pipe",
                        "stack pipe",
                        "compare --a pipe --b null",
                        "metadata pipe",
                        "fio --name=a --filename=pipe --rw=read",
                        "fio --name=a --filename=null --rw=read",
                        "fio --name=a --filename=pipe --rw=write --destroy-data=pipe",
                        "iozone -i 1 -r 64k -s 1m -f pipe",
                        "sqlio -kR -s1 pipe",
                        "diskspd -d1 -W0 null",
                        "run pipe --op write --destroy-data pipe",
                        "report pipe.json",
                        "metadata null",
                    ],
                    refused(&["pipe|null"])
                )],
                ..UNHARMED
            },
            nothing_to_measure = Row {
                fault: "the target has no data, or less than one request",
                given: &[Text("mine", ""), Text("short", "a few words")],
                steps: &[run(
                    &[
                        "run mine",
                        "run short",
                        "sweep short",
                        "study short",
                        "stack short",
                        "compare --a mine --b short",
                        "sqlio -kR -s1 mine",
                        "diskspd -d1 -W0 mine",
                        "diskspd -d1 -W0 short",
                    ],
                    refused(&["mine|short"])
                )],
                ..UNHARMED
            },
            no_directory_for_files = Row {
                fault: "a file is where files should be made",
                given: &[File("mine"), Text("pm", "set location {here}/mine\nset number 5\nset transactions 5\nrun\n")],
                steps: &[run(
                    &[
                        "metadata mine",
                        "metadata mine/below",
                        "postmark pm",
                        "fio --name=a --size=1m --directory=mine",
                        "run mine/below",
                        "iozone -i 0 -s 64 -f mine/below",
                        "diskspd -d1 -c1M mine/below",
                    ],
                    refused(&["mine"])
                )],
                ..UNHARMED
            },
            swapped_between_runs = Row {
                fault: "the test file is replaced by a link to a file of the user's between two runs",
                given: &[File("precious"), Directory("shared")],
                steps: &[
                    Start(
                        "run {shared} --size 1m --buffered --op write --runtime 10ms --repeats 100000 --max-repeats 100000"
                    ),
                    Until(TestFile("shared", MIB)),
                    Do(TestFileReplaced("shared", "precious")),
                    Until(Written(64 * MIB)),
                    Signal(SIGINT),
                    Ended(Ends { codes: &[1, 130], words: &[], failed_points: false }),
                ],
                leaves: &["shared/halfpower-*"],
            },
            larger_than_what_is_filled = Row {
                fault: "a region beyond what is certain to be filled of a new file of no given size",
                given: &[],
                steps: &[run(
                    &[
                        "run {here} --region-start 1g",
                        "run {here} --region-start 40m --op write",
                        "sweep {here} --region-start 1g --request 4k,8k",
                    ],
                    refused(&["region start", "--size|free"])
                )],
                ..UNHARMED
            },
            a_verified_file = Row {
                fault: "a verification log without the file that it is about, or with one that is shorter, or no log",
                given: &[File("mine"), Text("short", "a few words")],
                steps: &[run(
                    &["verify mine mine", "verify short mine", "verify mine"],
                    refused(&["mine|short", "not a verification log"])
                )],
                ..UNHARMED
            },
        ]
    ),
    failing(
        "Storage that fails",
        "A request that fails makes a failed point that says which request and why, never a number. Wrong data are found and named. \
 No file is left, and what cannot be removed is named.",
        [
            a_device_that_shrank = Row {
                fault: "the second half of a device is gone (its loop file was shortened)",
                given: &[Disk("disk"), Length("disk.img", DISK / 2)],
                steps: &[run(
                    &[
                        "sweep {disk} --pattern seq,backward --request 64k --depth 1,8 --bytes 1m --repeats 1 --max-repeats 1 --json",
                        "sweep {disk} --pattern seq,backward --request 64k --engine threads,libaio --depth 4 --bytes 1m --repeats 1 --max-repeats 1 --json",
                    ],
                    failed_points(&["a read of 65536 bytes at offset", "Input/output error"])
                )],
                ..UNHARMED
            },
            a_mapped_device_that_shrank = Row {
                fault: "the same through mapped memory (SIGBUS)",
                given: &[Disk("disk"), Length("disk.img", DISK / 2)],
                steps: &[run(
                    &[
                        "sweep {disk} --buffered --engine mmap --pattern seq,backward --request 64k --bytes 1m --repeats 1 --max-repeats 1 --json",
                    ],
                    failed_points(&["a read of 65536 bytes at offset"])
                )],
                ..UNHARMED
            },
            a_device_that_shrinks = Row {
                fault: "a device shrinks during the run",
                given: &[Disk("disk")],
                steps: &[
                    Start("run {disk} --pattern random --request 64k --depth 4 --runtime 60 --json"),
                    Until(HasRead(MIB)),
                    Do(Length("disk.img", 0)),
                    Ended(failed_points(&["a read of 65536 bytes at offset", "Input/output error"])),
                ],
                leaves: &["disk.img"],
            },
            a_file_that_is_cut = Row {
                fault: "somebody shortens the file during the run",
                given: &[File("mine")],
                steps: &[
                    Start("run mine --buffered --pattern random --request 64k --runtime 60 --json"),
                    Until(HasRead(4 * MIB)),
                    Do(Length("mine", 4096)),
                    Ended(failed_points(&["the target ends there"])),
                ],
                leaves: &["mine"],
            },
            a_mapped_file_that_is_cut = Row {
                fault: "the same through mapped memory (SIGBUS)",
                given: &[File("mine")],
                steps: &[
                    Start("run mine --buffered --engine mmap --pattern random --request 64k --runtime 60 --json"),
                    Until(Mapped("mine")),
                    Do(Length("mine", 4096)),
                    Ended(failed_points(&["a read of 65536 bytes at offset"])),
                ],
                leaves: &["mine"],
            },
            reads_fail = Row {
                fault: "reads fail with EIO from 512 KiB on",
                given: &[Faulty("fs", &[fault(Read, 512 * KIB, Error(EIO))]), FaultyFile("fs", "mine")],
                steps: &[
                    run(
                        &[
                            "sweep fs/mine --buffered --direct --request 64k --bytes 1m --repeats 1 --max-repeats 1 --json"
                        ],
                        failed_points(&["a read of 65536 bytes at offset", "Input/output error"])
                    ),
                    run(
                        &[
                            "fio --name=a --filename=fs/mine --rw=read --direct=1",
                            "iozone -i 1 -r 64k -s 1m -f fs/mine",
                            "sqlio -kR -fsequential -s1 -b64 fs/mine",
                            "diskspd -d1 -W0 -b64K -Su fs/mine",
                        ],
                        fails(&["Input/output error"])
                    ),
                    Met("fs"),
                ],
                ..UNHARMED
            },
            writes_fail = Row {
                fault: "writes fail with EIO from 512 KiB on",
                given: &[Faulty("fs", &[fault(Write, 512 * KIB, Error(EIO))]), POSTMARK],
                steps: &[
                    run(
                        &[
                            "run fs --size 1m --bytes 1m",
                            "fio --name=a --directory=fs --size=1m --rw=write --direct=1",
                            "iozone -i 0 -r 64k -s 1m -f fs/iozone.tmp",
                            "sqlio -kW -fsequential -s1 -b64 -BN --size 1m fs",
                            "diskspd -d1 -W0 -w100 -c1M -b64K -Su fs",
                            "metadata fs --files 2 --file-bytes 1m --rounds 1",
                        ],
                        fails(&["Input/output error"])
                    ),
                    Met("fs"),
                ],
                ..UNHARMED
            },
            space_ends = Row {
                fault: "the file system says that it is full in the middle of a file (ENOSPC)",
                given: &[Faulty("fs", &[fault(Write, 512 * KIB, Error(ENOSPC))])],
                steps: &[
                    run(
                        &[
                            "run fs --size 1m --bytes 1m",
                            "fio --name=a --directory=fs --size=1m --rw=write --direct=1",
                            "iozone -i 0 -r 64k -s 1m -f fs/iozone.tmp",
                            "sqlio -kW -fsequential -s1 -b64 -BN --size 1m fs",
                            "diskspd -d1 -W0 -w100 -c1M -b64K -Su fs",
                            "metadata fs --files 2 --file-bytes 1m --rounds 1",
                        ],
                        fails(&["full|o space left"])
                    ),
                    Met("fs"),
                ],
                ..UNHARMED
            },
            a_quota_ends = Row {
                fault: "a quota ends in the middle of a file (EDQUOT)",
                given: &[Faulty("fs", &[fault(Write, 512 * KIB, Error(EDQUOT))])],
                steps: &[
                    run(
                        &[
                            "run fs --size 1m --bytes 1m",
                            "fio --name=a --directory=fs --size=1m --rw=write --direct=1",
                            "metadata fs --files 2 --file-bytes 1m --rounds 1",
                        ],
                        fails(&["full|uota"])
                    ),
                    Met("fs"),
                ],
                ..UNHARMED
            },
            a_small_file_system_fills = Row {
                fault: "a real file system fills: ext4 and tmpfs",
                given: &[
                    Ext4("ext4"),
                    Tmpfs("tmpfs", "4m"),
                    Text("pm", "set location {here}/tmpfs\nset size 500000\nset number 40\nset transactions 10\nrun\n")
                ],
                steps: &[
                    run(
                        &[
                            "sweep tmpfs --size 3m --buffered --op write --request 1m --allocate written,extend --bytes 3m --repeats 1 --max-repeats 2 --json"
                        ],
                        failed_points(&["No space left", "write of"])
                    ),
                    run(
                        &[
                            "metadata tmpfs --files 40 --file-bytes 1m --rounds 1",
                            "fio --size=3m --rw=write --fallocate=none --directory=tmpfs --name=x --name=y",
                            "postmark pm",
                        ],
                        fails(&["pace"])
                    ),
                    run(
                        &[
                            "run ext4 --size 64m",
                            "study ext4 --size 64m",
                            "fio --name=x --size=64m --directory=ext4 --rw=write",
                            "diskspd -d1 -W0 -c64M ext4",
                            "sqlio -kW -frandom -BY --runtime 1 --size 64m ext4",
                            "iozone -f ext4/file -s 64m -r 64k -i 0",
                        ],
                        refused(&["free|space"])
                    ),
                ],
                ..UNHARMED
            },
            short_reads = Row {
                fault: "reads return half of what was asked for",
                given: &[Faulty("fs", &[fault(Read, 512 * KIB, Half)]), FaultyFile("fs", "mine")],
                steps: &[
                    run(
                        &["run fs/mine --direct --request 64k --bytes 1m --repeats 1 --max-repeats 1 --json"],
                        failed_points(&["a read of 65536 bytes at offset"])
                    ),
                    Met("fs"),
                ],
                ..UNHARMED
            },
            short_writes = Row {
                fault: "writes take half of what was given",
                given: &[Faulty("fs", &[]), FaultyFile("fs", "mine"), Faults("fs", &[fault(Write, 512 * KIB, Half)])],
                steps: &[
                    run(
                        &[
                            "run fs --size 1m --direct --op write --request 64k --bytes 1m --repeats 1 --max-repeats 1 --verify --json"
                        ],
                        failed_points(&["a write of 65536 bytes at offset", "were done"])
                    ),
                    Met("fs"),
                ],
                ..UNHARMED
            },
            no_sync = Row {
                fault: "fsync fails",
                given: &[Faulty("fs", &[fault(Sync, 0, Error(EIO))])],
                steps: &[
                    run(
                        &[
                            "run fs --size 1m --op write --bytes 64k --end-fdatasync",
                            "fio --name=a --directory=fs --size=1m --rw=write --end_fsync=1",
                            "iozone -i 0 -r 64k -s 1m -e -f fs/iozone.tmp",
                            "metadata fs --files 2 --file-bytes 4k --rounds 1 --sync file",
                        ],
                        fails(&["Input/output error"])
                    ),
                    Met("fs"),
                ],
                ..UNHARMED
            },
            wrong_data = Row {
                fault: "one bit of each block read is wrong",
                given: &[Faulty("fs", &[fault(Read, 512 * KIB, Flip)])],
                steps: &[
                    run(
                        &["run fs --size 1m --direct --op write --bytes 1m --repeats 1 --max-repeats 1 --verify"],
                        fails(&["flipped"])
                    ),
                    run(
                        &[
                            "fio --name=a --directory=fs --size=1m --rw=write --bs=4k --verify=crc32c --direct=1",
                            "iozone -i 0 -i 1 -r 64k -s 1m -I -V 7 -f fs/iozone.tmp",
                        ],
                        fails(&["verif|compar|rror"])
                    ),
                    Met("fs"),
                ],
                ..UNHARMED
            },
            lost_writes = Row {
                fault: "writes are confirmed and lost",
                given: &[Faulty("fs", &[])],
                steps: &[
                    Do(Faults("fs", &[fault(Write, 512 * KIB, Lose)])),
                    run(
                        &["run fs --size 1m --direct --op write --bytes 1m --repeats 1 --max-repeats 1 --verify"],
                        fails(&["the data read back is not the data written"])
                    ),
                    run(
                        &["fio --name=a --directory=fs --size=1m --rw=write --bs=4k --verify=crc32c --direct=1"],
                        fails(&["verif|rror"])
                    ),
                    Met("fs"),
                ],
                ..UNHARMED
            },
            misplaced_writes = Row {
                fault: "writes land 4 KiB further on",
                given: &[Faulty("fs", &[fault(Write, 512 * KIB, Misplace)])],
                steps: &[
                    run(
                        &[
                            "run fs --size 1m --direct --op write --request 4k --pattern random --bytes 1m --repeats 1 --max-repeats 1 --verify"
                        ],
                        fails(&["misdirected"])
                    ),
                    run(
                        &["fio --name=a --directory=fs --size=1m --rw=randwrite --bs=4k --verify=crc32c --direct=1"],
                        fails(&["verif|rror"])
                    ),
                    Met("fs"),
                ],
                ..UNHARMED
            },
            no_new_files = Row {
                fault: "no file can be made: read-only after all",
                given: &[Faulty("fs", &[fault(Create, 0, Error(EROFS))])],
                steps: &[
                    run(
                        &[
                            "run fs --size 1m",
                            "study fs --size 1m --quick",
                            "fio --name=a --directory=fs --size=1m --rw=write",
                            "iozone -i 0 -s 64 -f fs/iozone.tmp",
                            "sqlio -kW -s1 --size 1m fs",
                            "diskspd -d1 -c1M fs",
                            "metadata fs --files 4",
                        ],
                        no_result(&["ead-only"])
                    ),
                    Met("fs"),
                ],
                ..UNHARMED
            },
            cannot_be_removed = Row {
                fault: "the test file cannot be removed",
                given: &[Faulty("fs", &[fault(Remove, 0, Error(EIO))])],
                steps: &[
                    run(
                        &["run fs --size 1m --buffered --bytes 64k --repeats 1 --max-repeats 1"],
                        well(&["cannot remove", "halfpower-", "Input/output error"])
                    ),
                    Met("fs"),
                ],
                leaves: &["fs/*"],
            },
            reads_hang = Row {
                fault: "reads never end until the process is killed (as over NFS): the first Ctrl-C says what is waited for, the second leaves, and the next start cleans up",
                given: &[Faulty("fs", &[])],
                steps: &[
                    Do(Faults("fs", &[fault(Read, 512 * KIB, Hang)])),
                    Start("run fs --size 1m --direct --engine sync --request 64k --runtime 60"),
                    Until(Hangs("fs")),
                    Signal(SIGINT),
                    Until(Said("Ctrl-C again leaves at once")),
                    Signal(SIGINT),
                    Ended(INTERRUPTED),
                    Do(Faults("fs", &[])),
                    run(&["run fs --size 1m --buffered --bytes 64k --repeats 1 --max-repeats 1"], well(&[])),
                ],
                ..UNHARMED
            },
            queued_reads_hang = Row {
                fault: "the same with requests outstanding in io_uring or libaio",
                given: &[Faulty("fs", &[])],
                steps: &[
                    Do(Faults("fs", &[fault(Read, 512 * KIB, Hang)])),
                    Start("run fs --size 1m --direct --engine io_uring --request 64k --depth 4 --runtime 60"),
                    Until(Hangs("fs")),
                    Signal(SIGINT),
                    Until(Said("Ctrl-C again leaves at once")),
                    Signal(SIGINT),
                    Ended(INTERRUPTED),
                    Start("run fs --size 1m --direct --engine libaio --request 64k --depth 4 --runtime 60"),
                    Until(Hangs("fs")),
                    Signal(SIGINT),
                    Until(Said("Ctrl-C again leaves at once")),
                    Signal(SIGINT),
                    Ended(INTERRUPTED),
                    Do(Faults("fs", &[])),
                    run(&["run fs --size 1m --buffered --bytes 64k --repeats 1 --max-repeats 1"], well(&[])),
                ],
                ..UNHARMED
            },
            answers_come_late = Row {
                fault: "reads are answered late: they are waited for, and it is their latency",
                given: &[Faulty("fs", &[])],
                steps: &[
                    Do(Faults("fs", &[fault(Read, 512 * KIB, Hold)])),
                    Start("run fs --size 1m --direct --request 64k --depth 4 --bytes 1m --repeats 1 --max-repeats 1"),
                    Until(Hangs("fs")),
                    Do(Faults("fs", &[])),
                    Do(Released("fs")),
                    Ended(well(&[])),
                    Do(Faults("fs", &[fault(Read, 512 * KIB, Hold)])),
                    Start("fio --name=a --directory=fs --size=1m --rw=read --direct=1"),
                    Until(Hangs("fs")),
                    Do(Faults("fs", &[])),
                    Do(Released("fs")),
                    Ended(well(&[])),
                    Met("fs"),
                ],
                ..UNHARMED
            },
            a_place_that_goes = Row {
                fault: "the directory is unmounted during the run, although it is in use: nothing is made in what lies below it",
                given: &[Tmpfs("gone", "16m")],
                steps: &[
                    Start(
                        "sweep gone --size 1m --buffered --op write --runtime 10ms --request 4k,8k --allocate written,extend --repeats 30 --max-repeats 30 --json"
                    ),
                    Until(TestFile("gone", MIB)),
                    Do(LazilyUnmounted("gone")),
                    Ended(Ends { codes: &[0, 1], words: &[], failed_points: false }),
                ],
                leaves: &["gone"],
            },
            read_only = Row {
                fault: "the file system is read-only",
                given: &[
                    Tmpfs("ro", "4m"),
                    File("ro/mine"),
                    ReadOnly("ro"),
                    Text("pm", "set location {here}/ro\nset number 5\nset transactions 5\nrun\n")
                ],
                steps: &[
                    run(
                        &[
                            "run ro",
                            "study ro --quick",
                            "metadata ro",
                            "fio --name=a --directory=ro --size=64k --rw=write",
                            "iozone -i 0 -s 64 -f ro/iozone.tmp",
                            "sqlio -kW -s1 --size 64k ro",
                            "diskspd -d1 -c64K ro",
                            "run ro/mine --op write --destroy-data ro/mine",
                        ],
                        no_result(&["ead-only"])
                    ),
                    run(&["postmark pm"], no_result(&["ead-only|cannot"])),
                    run(&["run ro/mine --buffered --bytes 64k --repeats 1 --max-repeats 1"], well(&[])),
                ],
                ..UNHARMED
            },
        ]
    ),
    limits(
        "Limits",
        "Where the system gives less than was asked for, halfpower does with less or says which limit it met.",
        [
            no_locked_memory = Row {
                fault: "no memory may be locked, as an ordinary user",
                given: &[File("mine"), Mode("mine", 0o644)],
                steps: &[Run(
                    By {
                        words: "as a user without locked memory",
                        nobody: true,
                        starter: &["prlimit", "--memlock=0"],
                        ..PLAIN
                    },
                    &[
                        "run {here}/mine --buffered --request 4k --depth 8 --bytes 64k --repeats 1 --max-repeats 1",
                        "sweep {here}/mine --buffered --request 4k --depth 8,9 --bytes 64k --repeats 1 --max-repeats 1",
                        "fio --name=a --filename={here}/mine --rw=randread --iodepth=8 --ioengine=io_uring",
                        "sqlio -kR -frandom --runtime 20ms -b64 -BY -o8 {here}/mine",
                        "diskspd -d1 -W0 -o8 -b64K {here}/mine",
                        "iozone -i 1 -w -s 64k -r 4k -H 4 -f {here}/mine",
                    ],
                    well(&["no more memory may be locked|io_uring is not available here"])
                )],
                ..UNHARMED
            },
            a_file_size_limit = Row {
                fault: "the limit on file sizes (ulimit -f) is smaller than the test file",
                given: &[POSTMARK],
                steps: &[Run(
                    under("under prlimit --fsize=64k", &["prlimit", "--fsize=65536"]),
                    &[
                        "run {here} --size 1m",
                        "fio --name=a --directory={here} --size=1m --rw=write",
                        "iozone -i 0 -r 64k -s 1m -f {here}/iozone.tmp",
                        "sqlio -kW -s1 --size 1m {here}",
                        "diskspd -d1 -w100 -c1M {here}",
                        "metadata {here} --files 2 --file-bytes 1m --rounds 1",
                    ],
                    no_result(&["File too large"])
                )],
                ..UNHARMED
            },
            few_open_files = Row {
                fault: "few files may be open",
                given: &[File("mine")],
                steps: &[Run(
                    under("under prlimit --nofile=12", &["prlimit", "--nofile=12"]),
                    &["fio --name=a --directory={here} --size=1m --nrfiles=64 --rw=write",],
                    no_result(&["Too many open files"])
                )],
                ..UNHARMED
            },
            little_memory = Row {
                fault: "there is not enough memory for the requests",
                given: &[Disk("disk")],
                steps: &[Run(
                    under("under prlimit --as=400m", &["prlimit", "--as=419430400"]),
                    &[
                        "run {disk} --request 8m --depth 1024 --runtime 10ms --repeats 1 --max-repeats 1",
                        "run {disk} --op write --request 8m --depth 1024 --destroy-data {disk}",
                        "sweep {disk} --op write --request 8m --depth 1,1024 --destroy-data {disk}",
                        "compare --a {disk} --b {disk} --op write --request 8m --depth 1024 --destroy-data {disk}",
                        "fio --name=a --filename={disk} --rw=write --bs=8m --iodepth=1024 --ioengine=libaio --direct=1 --destroy-data={disk}",
                        "sqlio -kW -frandom -s1 -b4096 -o256 -t4 -BN {disk} --destroy-data {disk}",
                        "diskspd -d1 -W0 -w100 -b8M -o1024 -Su {disk} --destroy-data {disk}",
                        "run {here} --request 8m --depth 1024",
                    ],
                    refused(&["memory"])
                )],
                ..UNHARMED
            },
            a_group_of_little_memory = Row {
                fault: "the control group has not enough memory for the requests",
                given: &[Disk("disk"), Group("group", Limit::Memory(192 * MIB))],
                steps: &[Run(
                    IN_GROUP,
                    &[
                        "run {disk} --op write --request 8m --depth 64 --destroy-data {disk}",
                        "sweep {disk} --op write --request 8m --depth 64 --destroy-data {disk}",
                        "fio --name=a --filename={disk} --rw=write --bs=8m --iodepth=64 --ioengine=libaio --direct=1 --destroy-data={disk}",
                        "diskspd -d1 -W0 -w100 -b8M -o64 -Su {disk} --destroy-data {disk}",
                        "iozone -t 4 -i 0 -s 256m -r 256m -f {here}",
                    ],
                    refused(&["memory"])
                )],
                ..UNHARMED
            },
            a_group_of_few_processes = Row {
                fault: "the control group may have few processes and threads",
                given: &[
                    File("mine"),
                    Text(
                        "pm",
                        "set location {here}\nset threads 64\nset number 200\nset transactions 200\nrun\nquit\n"
                    ),
                    Group("group", Limit::Processes(4)),
                ],
                steps: &[
                    Run(
                        IN_GROUP,
                        &[
                            "run mine --buffered --request 4k --threads 64 --bytes 1m --repeats 1 --max-repeats 1",
                            "fio --name=a --filename=mine --numjobs=64 --rw=read",
                            "diskspd -d1 -t64 -W0 mine",
                            "metadata {here} --files 200 --threads 64 --rounds 1",
                            "postmark pm",
                        ],
                        no_result(&["more threads"])
                    ),
                    Run(IN_GROUP, &["run mine --buffered --bytes 64k --repeats 1 --max-repeats 1"], well(&[])),
                ],
                ..UNHARMED
            },
            a_group_of_no_thread = Row {
                fault: "the control group may have no thread beside the first",
                given: &[File("mine"), Group("group", Limit::Processes(1))],
                steps: &[
                    Run(
                        IN_GROUP,
                        &[
                            "run mine --buffered --bytes 64k --repeats 1 --max-repeats 1",
                            "fio --name=a --filename=mine --rw=read",
                            "study mine --quick --budget 5s --only memory --output out",
                        ],
                        fails(&["more threads"])
                    ),
                    Run(IN_GROUP, &["metadata {here} --files 20 --rounds 1", "twin list"], well(&[])),
                ],
                ..UNHARMED
            },
            a_group_of_little_processor = Row {
                fault: "the control group has a fifth of a processor: the result says so",
                given: &[File("mine"), Group("group", Limit::Processor(20))],
                steps: &[Run(
                    IN_GROUP,
                    &["run mine --buffered --bytes 64k --repeats 1 --max-repeats 1 --json"],
                    well(&["\"cpu_quota\": \"0.20\""])
                )],
                ..UNHARMED
            },
            few_processes = Row {
                fault: "few threads may run, as an ordinary user",
                given: &[File("mine"), Mode("mine", 0o644)],
                steps: &[Run(
                    By {
                        words: "as a user with one process",
                        nobody: true,
                        starter: &["prlimit", "--nproc=2"],
                        ..PLAIN
                    },
                    &[
                        "run {here}/mine --buffered --request 4k --threads 64 --bytes 1m --repeats 1 --max-repeats 1",
                        "fio --name=a --filename={here}/mine --numjobs=64 --rw=read",
                        "diskspd -d1 -t64 -W0 {here}/mine",
                    ],
                    no_result(&["threads|Resource temporarily unavailable"])
                )],
                ..UNHARMED
            },
            no_permission_to_make = Row {
                fault: "no permission to make files",
                given: &[Text("pm", "set location {here}\nset number 5\nset transactions 5\nrun\n")],
                steps: &[Run(
                    NOBODY,
                    &[
                        "run {here}",
                        "study {here} --quick --output /tmp",
                        "metadata {here}",
                        "fio --name=a --directory={here} --size=64k --rw=write",
                        "iozone -i 0 -s 64 -f {here}/iozone.tmp",
                        "sqlio -kW -s1 --size 64k {here}",
                        "diskspd -d1 -c64K {here}",
                        "postmark {here}/pm",
                    ],
                    no_result(&["ermission"])
                )],
                ..UNHARMED
            },
            no_permission_to_read = Row {
                fault: "no permission to read, or to look",
                given: &[File("mine"), Mode("mine", 0o600), Directory("hidden"), Mode("hidden", 0o700)],
                steps: &[Run(
                    NOBODY,
                    &[
                        "run {here}/mine",
                        "sweep {here}/hidden/file",
                        "fio --name=a --filename={here}/mine --rw=read",
                        "iozone -i 1 -r 64k -s 1m -f {here}/mine",
                        "sqlio -kR -s1 {here}/mine",
                        "diskspd -d1 -W0 {here}/mine",
                        "metadata {here}/hidden",
                        "report {here}/mine",
                        "verify {here}/mine",
                    ],
                    no_result(&["ermission"])
                )],
                ..UNHARMED
            },
            no_permission_to_write = Row {
                fault: "no permission to write what is named after --destroy-data",
                given: &[File("mine"), Mode("mine", 0o644)],
                steps: &[Run(
                    NOBODY,
                    &[
                        "run {here}/mine --op write --destroy-data {here}/mine",
                        "fio --name=a --filename={here}/mine --rw=write --destroy-data={here}/mine",
                        "sqlio -kW -frandom -s1 -BY {here}/mine --destroy-data {here}/mine",
                        "diskspd -d1 -W0 -w100 {here}/mine --destroy-data {here}/mine",
                    ],
                    no_result(&["ermission"])
                )],
                ..UNHARMED
            },
        ]
    ),
    endings(
        "Ends in the middle",
        "Ctrl-C, SIGTERM and SIGHUP end every command in order and leave nothing. After kill -9 the next start removes what was left, \
 and never the file of a running process or of the user's.",
        [
            interrupted_while_filling = Row {
                fault: "a signal while the test file is filled",
                given: &[],
                steps: &[
                    Start("run {here} --size 2g"),
                    Until(TestFile("", MIB)),
                    Signal(SIGINT),
                    Ended(INTERRUPTED),
                    Start("run {here} --size 2g"),
                    Until(TestFile("", MIB)),
                    Signal(SIGTERM),
                    Ended(INTERRUPTED),
                ],
                ..UNHARMED
            },
            interrupted_while_measuring = Row {
                fault: "a signal during a run that waits: many outstanding, threads, pauses, a slow schedule",
                given: &[],
                steps: &[
                    Start("run {here} --size 1m --buffered --depth 32 --runtime 60"),
                    Until(Written(MIB)),
                    Signal(SIGINT),
                    Ended(INTERRUPTED),
                    Start("run {here} --size 1m --buffered --threads 4 --op write --allocate extend --runtime 60"),
                    Until(Written(MIB)),
                    Signal(SIGHUP),
                    Ended(INTERRUPTED),
                    Start("run {here} --size 1m --buffered --think 1h --depth 2 --runtime 1h"),
                    Until(Written(MIB)),
                    Signal(SIGTERM),
                    Ended(INTERRUPTED),
                    Start("run {here} --size 1m --buffered --rate 0.001 --runtime 1h"),
                    Until(Written(MIB)),
                    Signal(SIGINT),
                    Ended(INTERRUPTED),
                    Start("study {here} --size 1m --quick --output out"),
                    Until(Written(MIB)),
                    Signal(SIGINT),
                    Ended(INTERRUPTED),
                ],
                ..UNHARMED
            },
            interrupted_comparisons = Row {
                fault: "a signal during a comparison, a study of layers",
                given: &[],
                steps: &[
                    Start("compare --a {here} --b {here} --size 1m --buffered --op write"),
                    Until(Written(4 * MIB)),
                    Signal(SIGINT),
                    Ended(Ends { codes: &[0, 130], words: &[], failed_points: false }),
                    Start("stack {here} --size 1m"),
                    Until(Written(MIB)),
                    Signal(SIGTERM),
                    Ended(INTERRUPTED),
                ],
                ..UNHARMED
            },
            stopped = Row {
                fault: "the program is stopped for a while in the middle of a run (SIGSTOP): the run is named, left out and repeated",
                given: &[
                    Faulty("fs", &[]),
                    Text("pm", "set location {here}/fs\nset number 5\nset transactions 5\nrun\nquit\n")
                ],
                steps: &[
                    stop(
                        fault(Read, 512 * KIB, Hold),
                        "run fs --size 1m --direct --engine sync --request 64k --bytes 1m --repeats 1 --max-repeats 1"
                    ),
                    stop(fault(Read, 512 * KIB, Hold), "fio --name=a --directory=fs --size=1m --rw=read --direct=1"),
                    stop(fault(Read, 512 * KIB, Hold), "iozone -i 0 -i 1 -r 64k -s 1m -I --repeats 1 -f fs/iozone.tmp"),
                    stop(fault(Create, 0, Hold), "metadata fs --files 4 --rounds 1"),
                    stop(fault(Create, 0, Hold), "postmark pm"),
                    Met("fs"),
                ],
                ..UNHARMED
            },
            interrupts_at_any_moment = Row {
                fault: "signals at random moments, from a seed",
                given: &[
                    POSTMARK,
                    Text("much", "set location {here}\nset number 20000\nset transactions 20000\nrun\n")
                ],
                steps: &[
                    Storm {
                        seed: 1,
                        times: 10,
                        line: "run {here} --size 1m --buffered --op write --runtime 60",
                        signal: SIGINT
                    },
                    Storm { seed: 2, times: 10, line: "metadata {here} --files 100000", signal: SIGTERM },
                    Storm {
                        seed: 3,
                        times: 10,
                        line: "fio --name=a --directory={here} --size=1m --rw=randwrite --time_based --runtime=60",
                        signal: SIGINT
                    },
                    Storm { seed: 4, times: 10, line: "postmark much", signal: SIGTERM },
                    Storm {
                        seed: 5,
                        times: 10,
                        line: "iozone -a -n 64k -g 1m -f {here}/iozone.tmp --repeats 1000",
                        signal: SIGINT
                    },
                    Storm {
                        seed: 6,
                        times: 10,
                        line: "sqlio -kW -frandom -BY --runtime 60 --size 1m {here}",
                        signal: SIGHUP
                    },
                    Storm { seed: 7, times: 10, line: "diskspd -d60 -W0 -w100 -c1M {here}", signal: SIGINT },
                ],
                ..UNHARMED
            },
            killed_at_any_moment = Row {
                fault: "kill -9 at random moments, from a seed; the next start cleans up",
                given: &[
                    POSTMARK,
                    Text("much", "set location {here}\nset number 20000\nset transactions 20000\nrun\n")
                ],
                steps: &[
                    Storm {
                        seed: 11,
                        times: 10,
                        line: "run {here} --size 1m --buffered --op write --runtime 60",
                        signal: SIGKILL
                    },
                    Storm { seed: 12, times: 10, line: "metadata {here} --files 100000", signal: SIGKILL },
                    Storm { seed: 13, times: 10, line: "postmark much", signal: SIGKILL },
                    Storm {
                        seed: 14,
                        times: 10,
                        line: "sqlio -kW -frandom -BY --runtime 60 --size 1m {here}",
                        signal: SIGKILL
                    },
                    Storm { seed: 15, times: 10, line: "diskspd -d60 -W0 -w100 -c1M {here}", signal: SIGKILL },
                    run(
                        &[
                            "run {here} --size 1m --buffered --bytes 64k --repeats 1 --max-repeats 1",
                            "metadata {here} --files 4 --rounds 1"
                        ],
                        well(&[])
                    ),
                ],
                ..UNHARMED
            },
            killed_before_the_name = Row {
                fault: "kill -9 after a file, a directory or an output was made and before it has its name; the next start cleans up",
                given: &[Faulty("fs", &[]), Directory("tmp")],
                steps: &[
                    Do(Faults("fs", &[fault(Rename, 0, Hang)])),
                    Start("run fs --size 1m --buffered --runtime 60"),
                    Until(Hangs("fs")),
                    Signal(SIGKILL),
                    Ended(KILLED),
                    Start("metadata fs --files 4 --rounds 1"),
                    Until(Hangs("fs")),
                    Signal(SIGKILL),
                    Ended(KILLED),
                    Start("fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=fs/out.json"),
                    Until(Hangs("fs")),
                    Signal(SIGKILL),
                    Ended(KILLED),
                    Do(Faults("fs", &[fault(Sync, 0, Hang)])),
                    Start("fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=fs/out.json"),
                    Until(Hangs("fs")),
                    Signal(SIGKILL),
                    Ended(KILLED),
                    Met("fs"),
                    Do(Faults("fs", &[])),
                    run(
                        &["fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=fs/out.json"],
                        well(&[])
                    ),
                    run(&["metadata fs --files 4 --rounds 1"], well(&[])),
                ],
                leaves: &["fs/out.json"],
            },
            named_files_of_the_killed = Row {
                fault: "kill -9 while files under names of the user's choice are there; the same command again",
                given: &[],
                steps: &[
                    Storm {
                        seed: 21,
                        times: 4,
                        line: "fio --name=a --filename={here}/data --size=1m --rw=randwrite --time_based --runtime=60",
                        signal: SIGKILL
                    },
                    run(&["fio --name=a --filename={here}/data --size=1m --rw=randwrite"], well(&[])),
                    Storm {
                        seed: 22,
                        times: 5,
                        line: "iozone -a -n 64k -g 1m -f {here}/iozone.tmp --repeats 1000",
                        signal: SIGKILL
                    },
                    run(&["iozone -i 0 -r 64k -s 256k -f {here}/iozone.tmp"], well(&[])),
                ],
                ..UNHARMED
            },
            killed_and_named = Row {
                fault: "kill -9 in the middle, the file is there: the next start removes it, and no living one's",
                given: &[Directory("at")],
                steps: &[
                    Start("run {at} --size 1m --buffered --runtime 60"),
                    Until(TestFile("at", MIB)),
                    Signal(SIGKILL),
                    Ended(KILLED),
                    run(&["run {at} --size 1m --buffered --bytes 64k --repeats 1 --max-repeats 1"], well(&[])),
                    Until(Gone("at")),
                    Start("run {at} --size 1m --buffered --runtime 60"),
                    Until(TestFile("at", MIB)),
                    run(&["run {at} --size 2m --buffered --bytes 64k --repeats 1 --max-repeats 1"], well(&[])),
                    Until(TestFile("at", MIB)),
                    Signal(SIGINT),
                    Ended(INTERRUPTED),
                ],
                ..UNHARMED
            },
            killed_while_measuring_a_disk = Row {
                fault: "kill -9 of a run that holds a device: the device is free again",
                given: &[Disk("disk")],
                steps: &[
                    Start("run {disk} --op write --pattern random --runtime 60 --destroy-data {disk}"),
                    Until(Written(9 * MIB)),
                    Signal(SIGKILL),
                    Ended(KILLED),
                    run(
                        &["run {disk} --op write --bytes 64k --repeats 1 --max-repeats 1 --destroy-data {disk}"],
                        well(&[])
                    ),
                ],
                leaves: &["disk.img"],
            },
            a_killed_verification = Row {
                fault: "kill -9 of a run that verifies: its log tells what must be there",
                given: &[File("mine")],
                steps: &[
                    Start(
                        "run mine --destroy-data mine --op mix --pattern random --request 8k --depth 16 --buffered --runtime 60 --verify --verify-log log"
                    ),
                    Until(Long("log", 100_000)),
                    Signal(SIGKILL),
                    Ended(KILLED),
                    run(&["verify log mine"], well(&["the data read back is the data written"])),
                    Do(Bytes("mine", 0, &[7; 64 << 10])),
                    run(&["verify log mine"], fails(&["the data read back is not the data written"])),
                ],
                leaves: &["mine", "log"],
            },
        ]
    ),
    together(
        "At the same time",
        "Commands that run at the same time do not take one another's files or devices.",
        [
            starts_at_once = Row {
                fault: "many starts at once in one directory",
                given: &[POSTMARK],
                steps: &[
                    Together(
                        12,
                        "run {here} --size 256k --buffered --bytes 64k --repeats 1 --max-repeats 1",
                        well(&[])
                    ),
                    Together(12, "metadata {here} --files 20 --rounds 1", well(&[])),
                    Together(6, "postmark pm", well(&[])),
                    Together(6, "sqlio -kW -frandom --runtime 20ms -BY -b64 --size 256k {here}", well(&[])),
                ],
                ..UNHARMED
            },
            two_writers = Row {
                fault: "two destructive runs on one device or file: the second is refused",
                given: &[Disk("disk"), File("mine")],
                steps: &[
                    Start("run {disk} --op write --runtime 60 --destroy-data {disk}"),
                    Until(Written(9 * MIB)),
                    run(
                        &[
                            "run {disk} --op write --destroy-data {disk}",
                            "fio --name=a --filename={disk} --rw=write --destroy-data={disk}",
                            "iozone -i 0 -r 64k -s 1m -f {disk} --destroy-data {disk}",
                            "sqlio -kW -frandom -s1 -BY {disk} --destroy-data {disk}",
                            "diskspd -d1 -W0 -w100 {disk} --destroy-data {disk}",
                        ],
                        refused(&["in use|exclusively|another run"])
                    ),
                    Signal(SIGINT),
                    Ended(INTERRUPTED),
                    Start("run mine --op write --buffered --runtime 60 --destroy-data mine"),
                    Until(Written(4 * MIB)),
                    run(
                        &[
                            "run mine --op write --destroy-data mine",
                            "fio --name=a --filename=mine --rw=write --destroy-data=mine"
                        ],
                        refused(&["another run"])
                    ),
                    Signal(SIGINT),
                    Ended(INTERRUPTED),
                ],
                leaves: &["disk.img", "mine"],
            },
            mkfs_in_the_middle = Row {
                fault: "mkfs, mount or swapon of a device during a destructive run: they are refused",
                given: &[Disk("disk"), Directory("at")],
                steps: &[
                    Start("run {disk} --op write --pattern random --runtime 60 --destroy-data {disk}"),
                    Until(Written(9 * MIB)),
                    Fails("mkfs.ext4 -q {disk}"),
                    Fails("mkfs.xfs -q {disk}"),
                    Fails("mount {disk} {at}"),
                    Signal(SIGINT),
                    Ended(INTERRUPTED),
                ],
                leaves: &["disk.img"],
            },
        ]
    ),
    names(
        "Names",
        "A name cannot steer the terminal, need not be UTF-8, and does not make a file halfpower's: only its mark does.",
        [
            steering = Row {
                fault: "names and options hold characters that steer a terminal",
                given: &[Directory("{steering}"), Text("pm", "set location {steering}\nset {steering}\nshow\nquit\n")],
                steps: &[
                    run(
                        &[
                            "run {steering} --size 1m --buffered --bytes 64k --repeats 1 --max-repeats 1",
                            "sweep {steering} --size 1m --buffered --bytes 64k --request 4k,8k --repeats 1 --max-repeats 1",
                            "metadata {steering} --files 4 --rounds 1",
                            "fio --name=a --size=64k --rw=read --filename={steering}/file",
                            "postmark pm",
                        ],
                        Ends { codes: &[0, 1, 2], words: &[], failed_points: false }
                    ),
                    run(
                        &[
                            "run {steering}/file",
                            "run --engine {steering}",
                            "run --{steering}",
                            "{steering}",
                            "report {steering}",
                            "stack {steering}/file",
                            "compare {steering}/file {steering}",
                            "compare --a {steering}/file --b {steering}",
                            "history --history {steering}/file",
                            "check {steering} --history {steering}/file",
                            "verify {steering}",
                            "metadata {steering}/file",
                            "twin show {steering}",
                            "sqlio -kR --runtime 20ms {steering}/no/file",
                            "diskspd -d1 {steering}/no/file",
                            "iozone -s 64 -i 0 -f {steering}/no/file",
                            "fio {steering}",
                        ],
                        no_result(&[])
                    ),
                ],
                ..UNHARMED
            },
            no_utf_8 = Row {
                fault: "names are not UTF-8",
                given: &[Directory("{bytes}")],
                steps: &[
                    run(
                        &[
                            "run {bytes} --size 1m --buffered --bytes 64k --repeats 1 --max-repeats 1 --json",
                            "metadata {bytes} --files 4 --rounds 1 --json",
                        ],
                        well(&[])
                    ),
                    run(
                        &[
                            "{bytes}",
                            "report {bytes}",
                            "verify {bytes}",
                            "run --op {bytes}",
                            "fio {bytes}",
                            "sqlio {bytes}",
                            "diskspd {bytes}",
                            "iozone -f {bytes}",
                        ],
                        no_result(&[])
                    ),
                ],
                ..UNHARMED
            },
            too_long = Row {
                fault: "names and options of 5,000 characters",
                given: &[],
                steps: &[run(
                    &[
                        "run {long}",
                        "metadata {long}",
                        "fio {long}",
                        "fio --name=a --filename={long} --rw=read",
                        "sqlio -kR -s1 {long}",
                        "diskspd -d1 {long}",
                        "iozone -i 1 -s 64 -f {long}",
                        "report {long}",
                        "verify {long}",
                        "run --{long}",
                        "twin show {long}",
                        "run --engine {long}",
                        "sqlio -{long}",
                        "diskspd -{long}",
                    ],
                    no_result(&[])
                )],
                ..UNHARMED
            },
            like_ours = Row {
                fault: "files and directories of the user's are called like halfpower's",
                given: &[
                    POSTMARK,
                    Directory("halfpower-2024-11.files"),
                    File("halfpower-2024-11.files/thesis"),
                    File("halfpower-1-0.tmp"),
                    File("halfpower-mine.tmp"),
                    File("halfpower-0123456789abcdef-01234567.tmp"),
                    Directory("halfpower-0123456789abcdef-01234567.files"),
                    File(".halfpower-0123456789abcdef.part"),
                    File("halfpower-out"),
                ],
                steps: &[run(IN_HERE, well(&[]))],
                ..UNHARMED
            },
        ]
    ),
    input(
        "Input",
        "What makes no sense is refused with exit code 2 and a sentence that names the value, before anything is made.",
        [
            no_sense = Row {
                fault: "numbers that are negative, too large, or none",
                given: &[],
                steps: &[run(
                    &[
                        "run . --size nonsense",
                        "run . --size 4x",
                        "run . --request 9g",
                        "run . --depth -1",
                        "run . --threads 9999",
                        "run . --engine warp",
                        "sweep . --request 4k,8k,16k,32k,64k,128k,256k,512k,1m,2m --depth 1,2,3,4,5,6,7,8,9,10 --threads 1,2,3,4,5,6,7,8,9,10 --offset 0,1k,2k,3k,4k,5k,6k,7k,8k,9k --pattern seq,random --op read,write,mix --hint none,sequential",
                        "run . --pattern zigzag",
                        "study . --budget soon",
                        "study . --budget 1s",
                        "iozone -s -5",
                        "iozone -r 99999999999999999999g",
                        "iozone -t -1",
                        "iozone -i 99999999999999999999",
                        "sqlio -t-3 .",
                        "sqlio -b99999999999999999999 .",
                        "sqlio -s0 .",
                        "diskspd -b-4K .",
                        "diskspd -c99999999999999999999T -d1 .",
                        "diskspd -t0 .",
                        "diskspd -w101 .",
                        "fio --name=a --size=-1",
                        "fio --name=a --size=99999999999999999999g",
                        "fio --name=a --size=1m --numjobs=-1",
                        "metadata --files -1",
                        "metadata --file-bytes 99999999999999999999",
                    ],
                    refused(&[])
                )],
                ..UNHARMED
            },
            noise = Row {
                fault: "files of jobs, parameters, profiles, results and machines hold noise",
                given: &[Noise("noise"), Text("empty", ""), Text("nul", "[a]\nsize=1m\0\nfilename=x\0y 4\n")],
                steps: &[run(
                    &[
                        "fio noise",
                        "fio empty",
                        "fio nul",
                        "sqlio -kR -frandom -s1 -Fnoise",
                        "sqlio -kR -frandom -s1 -Fempty",
                        "sqlio -kR -frandom -s1 -Fnul",
                        "diskspd -Xnoise",
                        "diskspd -Xempty",
                        "diskspd -Xnul",
                        "report noise",
                        "report empty",
                        "report nul",
                        "verify noise",
                        "postmark noise --json no/way",
                        "compare noise noise",
                        "compare empty nul",
                        "compare --columns a,b noise",
                        "history show 1 --history noise",
                        "check . --history noise",
                        "compare --a {blank}{blank} --b '",
                        "run twin:noise.toml",
                        "twin show noise",
                    ],
                    refused(&[])
                )],
                ..UNHARMED
            },
            other_documents = Row {
                fault: "documents of another program or of a later version",
                given: &[
                    Text("notes.json", "[1, 2]"),
                    Text("later.json", "{open}\"schema\": \"halfpower.results/99\"{close}")
                ],
                steps: &[run(
                    &["report notes.json", "report later.json", "compare notes.json later.json"],
                    refused(&["notes.json|later.json"])
                )],
                ..UNHARMED
            },
        ]
    ),
];
