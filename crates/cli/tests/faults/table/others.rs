use super::*;

const STRANGER: u32 = 64_000;

macro_rules! replaced {
    ($line:literal) => {
        Row {
            fault: concat!(
                "another user replaces the output's directory by a link during `",
                $line,
                "`: no file goes to the link's target"
            ),
            given: &[
                Faulty("fs", &[]),
                FaultyFile("fs", "mine"),
                Directory("parent"),
                Owned("parent", STRANGER),
                Directory("parent/out"),
                Directory("elsewhere"),
            ],
            steps: &[
                Do(Faults("fs", &[fault(Read, 0, Hold)])),
                Start($line),
                Until(Hangs("fs")),
                Do(Replaced("parent/out", "elsewhere")),
                Do(Faults("fs", &[])),
                Do(Released("fs")),
                Ended(fails(&["moved or replaced"])),
            ],
            leaves: &["parent/out", "parent/out.was", "parent/out.was/*"],
        }
    };
}

const IN_SHARED: &[&str] = &[
    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=shared/out/out.json",
    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --output=shared/out/out.json",
    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --write_bw_log=shared/out/l",
    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --bandwidth-log=shared/out/l",
    "iozone -i 0 -r 64k -s 1m -f twin:gateway-1997 --json shared/out/out.json",
    "iozone -i 0 -r 64k -s 1m -f twin:gateway-1997 --html shared/out/out.html",
    "iozone -i 0 -r 64k -s 1m -f twin:gateway-1997 -b shared/out/out.xls",
    "diskspd -d1 -W0 -b64K --json shared/out/out.json twin:gateway-1997",
    "sqlio -kR -s1 -b64 --json shared/out/out.json twin:gateway-1997",
    "postmark pm --json shared/out/out.json",
    "tune twin:gateway-1997 --bytes 1m --knob depth=8 --yes --output shared/out/out.json",
    "compare --a twin:gateway-1997 --b twin:gateway-1997,disks=2 --runtime 10ms --html shared/out/out.html",
    "compare --a twin:gateway-1997 --b twin:gateway-1997,disks=2 --runtime 10ms --csv shared/out/out.csv",
    "study twin:gateway-1997 --quick --only memory --output shared/out",
    "twin whatif gateway-1997 --set disks=2 --output shared/out",
    "run {here} --size 1m --buffered --op write --bytes 64k --verify --verify-log shared/out/log",
];

const READERS: &[&str] = &[
    "report strange",
    "compare strange strange",
    "compare strange",
    "compare strange strange --columns a,b",
    "fio strange",
    "fio including",
    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --read_iolog=strange",
    "fio --name=a --filename=twin:gateway-1997 --rw=write --size=1m --buffer_pattern='strange'",
    "sqlio -kR -s1 -Fstrange",
    "diskspd -Xstrange",
    "diskspd -d1 -W0 -w100 -Z1M,strange twin:gateway-1997",
    "iozone -+m strange -t 1 -i 0",
    "postmark strange",
    "twin show strange.toml",
    "twin cache strange",
    "twin fit strange",
    "run twin:strange.toml --runtime 10ms",
    "verify strange here",
    "history --history strange",
    "check twin:gateway-1997 --history strange",
];

const AS_SU: By = under(
    "as root with the home and the temporary directory of another user",
    &[
        "env",
        "-u",
        "HALFPOWER_HISTORY",
        "-u",
        "HALFPOWER_STATE",
        "-u",
        "XDG_DATA_HOME",
        "HOME={home/user}",
        "TMPDIR={home/user}",
    ],
);

const FROM_ZERO: By =
    under("with /dev/zero as standard input", &["sh", "-c", "exec \"$0\" \"$@\" </dev/zero"]);

const TUNE_DISK: &str =
    "tune {disk} --yes --knob read_ahead_kb=132 --bytes 64k --buffered --until 0.0001% --budget 1h";

/// A journal of one setting; no process has its writer's number.
macro_rules! journal {
    ($entry:literal) => {
        concat!(
            "{open}\"version\": 1, \"pid\": 4194305, \"boot_id\": \"\", \"entries\": [{open}",
            $entry,
            "{close}]{close}"
        )
    };
}

section![
    "Other users",
    "A directory is looked up once: another user who replaces it during a run changes nothing. Root writes into no directory and \
 follows no link that another user may have put in its way. Only their owner can open the locks and the journal, and the journal sets \
 only tune's own knobs. No read waits for a pipe, and each has a bound.",
    a_fio_document_in_a_replaced_directory = replaced!(
        "fio --name=a --filename=fs/mine --rw=read --direct=1 --json=parent/out/out.json"
    ),
    fio_logs_in_a_replaced_directory = replaced!(
        "fio --name=a --filename=fs/mine --rw=read --direct=1 --write_bw_log=parent/out/l --bandwidth-log=parent/out/all"
    ),
    an_iozone_sheet_in_a_replaced_directory =
        replaced!("iozone -i 1 -r 64k -s 1m -I --repeats 1 -f fs/mine -b parent/out/out.xls"),
    an_iozone_page_in_a_replaced_directory =
        replaced!("iozone -i 1 -r 64k -s 1m -I --repeats 1 -f fs/mine --html parent/out/out.html"),
    a_diskspd_document_in_a_replaced_directory =
        replaced!("diskspd -d1 -W0 -Sh -b64K --json parent/out/out.json fs/mine"),
    a_sqlio_document_in_a_replaced_directory =
        replaced!("sqlio -kR -frandom --runtime 20ms -b64 --json parent/out/out.json fs/mine"),
    a_study_in_a_replaced_directory =
        replaced!("study fs/mine --quick --budget 5s --only unbuffered --output parent/out"),
    a_comparison_in_a_replaced_directory = replaced!(
        "compare --a fs/mine --b fs/mine --direct --runtime 10ms --budget 1s --csv parent/out/out.csv --html parent/out/out.html"
    ),
    a_tuning_in_a_replaced_directory = replaced!(
        "tune fs/mine --direct --knob depth=8 --bytes 64k --budget 1s --yes --output parent/out/out.json"
    ),
    a_directory_of_another_user = Row {
        fault: "root's output would go into a directory that another user made in a world-writable one",
        given: &[
            POSTMARK,
            Directory("shared"),
            Mode("shared", 0o1777),
            Directory("shared/out"),
            Owned("shared/out", STRANGER),
        ],
        steps: &[run(IN_SHARED, refused(&["another user (uid 64000) made this directory"]))],
        ..UNHARMED
    },
    a_link_of_another_user = Row {
        fault: "a symbolic link of another user leads to root's directory",
        given: &[
            POSTMARK,
            Directory("shared"),
            Mode("shared", 0o1777),
            Directory("elsewhere"),
            Link("shared/out", "elsewhere"),
            Owned("shared/out", STRANGER),
        ],
        steps: &[run(
            IN_SHARED,
            refused(&["a symbolic link of another user (uid 64000)|Permission denied"])
        )],
        ..UNHARMED
    },
    a_link_of_ones_own = Row {
        fault: "the directory is a symbolic link of the user's own: it is followed, and the files go to its target",
        given: &[Directory("data"), Link("out", "data")],
        steps: &[
            run(
                &[
                    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=out/out.json",
                    STUDY
                ],
                well(&[])
            ),
            run(
                &["report out/results.json", "report out/results.json --output out/deeper/still"],
                well(&[])
            ),
        ],
        leaves: &["data/*"],
    },
    a_lock_that_another_user_holds = Row {
        fault: "tune was killed, and another user holds a lock that everybody can open: settings are put back all the same",
        given: &[Disk("disk"), Directory("state")],
        steps: &[
            Start(TUNE_DISK),
            Until(Set("disk", "read_ahead_kb", "132")),
            Signal(SIGKILL),
            Ended(KILLED),
            Do(Mode("state/tune.lock", 0o644)),
            Do(Locked("state/tune.lock", STRANGER)),
            run(&["twin list"], well(&["put back 1 setting"])),
        ],
        leaves: &["state/tune.lock"],
    },
    a_lock_that_another_program_holds = Row {
        fault: "another program of root's holds the lock: every command says which, and what stays changed",
        given: &[Disk("disk"), Directory("state")],
        steps: &[
            Start(TUNE_DISK),
            Until(Set("disk", "read_ahead_kb", "132")),
            Signal(SIGKILL),
            Ended(KILLED),
            Do(Locked("state/tune.lock", 0)),
            // This does not yet look at settings that stay changed until the lock is free.
            Start("twin list"),
            Ended(well(&[
                "state/tune.lock is locked by process",
                "(sleep)",
                "read_ahead_kb of loop"
            ])),
            Do(Unheld),
            run(&["twin list"], well(&["put back 1 setting"])),
        ],
        leaves: &["state/tune.lock"],
    },
    a_state_directory_of_another_user = Row {
        fault: "others may write in the directory of the journal",
        given: &[Disk("disk"), Directory("state"), Mode("state", 0o777)],
        steps: &[run(
            &["tune {disk} --yes --knob read_ahead_kb=132 --bytes 64k --budget 1s"],
            refused(&["state", "other users may write"])
        )],
        ..UNHARMED
    },
    pipes_in_place_of_state = Row {
        fault: "a named pipe has the name of the journal or of its lock: every command says so at once",
        given: &[Disk("disk"), Directory("state"), Pipe("state/tune.journal")],
        steps: &[
            run(&["twin list"], well(&["state/tune.journal", "named pipe"])),
            run(
                &["tune {disk} --yes --knob read_ahead_kb=132 --bytes 64k --budget 1s"],
                refused(&["state/tune.journal", "named pipe"])
            ),
            Do(Replaced("state/tune.journal", "absent")),
            Do(Replaced("state/tune.lock", "absent")),
            run(&["twin list"], well(&["state/tune.lock", "symbolic link"])),
        ],
        leaves: &[
            "state/tune.lock",
            "state/tune.lock.was",
            "state/tune.journal",
            "state/tune.journal.was"
        ],
    },
    a_pipe_in_place_of_the_lock = Row {
        fault: "a named pipe has the name of the lock",
        given: &[
            Directory("state"),
            Pipe("state/tune.lock"),
            Text("state/tune.journal", journal!("")),
        ],
        steps: &[run(&["twin list"], well(&["state/tune.lock", "named pipe"]))],
        ..UNHARMED
    },
    a_journal_of_other_settings = Row {
        fault: "a journal names a kernel parameter that tune never sets: it is refused and kept",
        given: &[
            Directory("state"),
            Text("state/tune.lock", ""),
            Mode("state/tune.lock", 0o600),
            Text(
                "state/tune.journal",
                journal!(
                    "\"knob\": \"vm.swappiness\", \"of\": \"this computer\", \"place\": {open}\"file\": \"/proc/sys/vm/swappiness\"{close}, \
 \"before\": \"61\", \"ours\": [\"60\"], \"reset_by_another\": true, \"persistent\": true"
                )
            ),
        ],
        steps: &[run(&["twin list"], well(&["/proc/sys/vm/swappiness is not a setting"]))],
        ..UNHARMED
    },
    a_journal_of_other_values = Row {
        fault: "a journal gives a knob a value that it cannot have",
        given: &[
            Directory("state"),
            Text("state/tune.lock", ""),
            Mode("state/tune.lock", 0o600),
            Text(
                "state/tune.journal",
                journal!(
                    "\"knob\": \"vm.dirty_ratio\", \"of\": \"this computer\", \"place\": {open}\"file\": \"/proc/sys/vm/dirty_ratio\"{close}, \
 \"before\": \"many\", \"ours\": [\"60\"], \"reset_by_another\": true, \"persistent\": true"
                )
            ),
        ],
        steps: &[run(
            &["twin list"],
            well(&["vm.dirty_ratio of this computer: 'many' is not a whole number"])
        )],
        ..UNHARMED
    },
    an_identity_that_is_a_pipe = Row {
        fault: "a journal names a pipe as the file that says which drive it was",
        given: &[
            Directory("state"),
            Text("state/tune.lock", ""),
            Mode("state/tune.lock", 0o600),
            Pipe("pipe"),
            Text(
                "state/tune.journal",
                journal!(
                    "\"knob\": \"vm.dirty_ratio\", \"of\": \"this computer\", \"place\": {open}\"file\": \"/proc/sys/vm/dirty_ratio\"{close}, \
 \"before\": \"21\", \"ours\": [\"20\"], \"persistent\": true, \"identity\": [\"{here}/pipe\", \"x\"]"
                )
            ),
        ],
        steps: &[run(&["twin list"], well(&["pipe identifies no drive"]))],
        ..UNHARMED
    },
    a_pipe_is_read = Row {
        fault: "a file that is read is a named pipe: it is refused at once",
        given: &[
            Pipe("strange"),
            Pipe("strange.toml"),
            File("here"),
            Text("including", "[global]\ninclude strange\n[a]\n")
        ],
        steps: &[run(READERS, no_result(&[]))],
        ..UNHARMED
    },
    a_device_is_read = Row {
        fault: "a file that is read is an endless device",
        given: &[
            CharNode("strange", 5),
            CharNode("strange.toml", 5),
            File("here"),
            Text("including", "[global]\ninclude strange\n[a]\n")
        ],
        steps: &[run(READERS, no_result(&[]))],
        ..UNHARMED
    },
    a_directory_is_read = Row {
        fault: "a file that is read is a directory or a socket",
        given: &[
            Directory("strange"),
            Socket("strange.toml"),
            File("here"),
            Text("including", "[global]\ninclude strange\n[a]\n")
        ],
        steps: &[run(READERS, no_result(&[]))],
        ..UNHARMED
    },
    a_large_file_is_read = Row {
        fault: "a file that is read is larger than any of its kind: the message names the bound",
        given: &[
            Text("strange", ""),
            Length("strange", 80 << 20),
            Text("strange.toml", ""),
            Length("strange.toml", 80 << 20),
            Text("including", "[global]\ninclude strange\n[a]\n"),
        ],
        steps: &[run(
            &[
                "report strange",
                "compare strange strange",
                "fio strange",
                "fio including",
                "sqlio -kR -s1 -Fstrange",
                "diskspd -Xstrange",
                "iozone -+m strange -t 1 -i 0",
                "postmark strange",
                "twin show strange.toml",
                "run twin:strange.toml --runtime 10ms",
                "twin fit strange",
            ],
            no_result(&["has at most"])
        )],
        ..UNHARMED
    },
    an_endless_standard_input = Row {
        fault: "standard input never ends: it is read up to a bound",
        given: &[],
        steps: &[Run(
            FROM_ZERO,
            &["report /dev/stdin", "fio -", "twin cache -", "compare /dev/stdin /dev/stdin"],
            refused(&["has at most|the line has more than|no known trace format begins with"])
        )],
        ..UNHARMED
    },
    a_pipe_of_the_shell = Row {
        fault: "a file that is read is a shell's <(command): it is read like any other",
        given: &[],
        steps: &[
            run(
                &[
                    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=a.json",
                    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=b.json",
                ],
                well(&[])
            ),
            Run(
                under(
                    "as bash passes it",
                    &["bash", "-c", "exec \"$0\" \"$@\" <(cat a.json) <(cat b.json)"]
                ),
                &["compare"],
                well(&[])
            ),
        ],
        leaves: &["a.json", "b.json"],
    },
    the_home_of_another_user = Row {
        fault: "root runs with HOME and TMPDIR of another user: neither the history nor a document is written there",
        given: &[
            Directory("home"),
            Owned("home", STRANGER),
            Directory("home/user"),
            Owned("home/user", STRANGER),
            CharNode("full", 7),
        ],
        steps: &[Run(
            AS_SU,
            &["run twin:gateway-1997 --runtime 10ms"],
            well(&["this result is not in the history", "of another user (uid 64000)"])
        )],
        ..UNHARMED
    },
    a_history_of_another_user = Row {
        fault: "the history is another user's, a link of another user, or a pipe",
        given: &[
            Text("history", ""),
            Owned("history", STRANGER),
            Link("link", "absent"),
            Owned("link", STRANGER),
            Pipe("pipe"),
        ],
        steps: &[run(
            &[
                "run twin:gateway-1997 --runtime 10ms --history history",
                "run twin:gateway-1997 --runtime 10ms --history link",
                "run twin:gateway-1997 --runtime 10ms --history pipe",
            ],
            well(&["this result is not in the history", "another user (uid 64000)|a named pipe"])
        )],
        ..UNHARMED
    },
    commands_of_another_user = Row {
        fault: "the current directory holds a .pmrc of another user: root does not obey it",
        given: &[
            Text(".pmrc", "set location {here}\nset number 20\nset transactions 20\nrun\n"),
            Owned(".pmrc", STRANGER)
        ],
        steps: &[run(&["postmark"], refused(&[".pmrc", "another user"]))],
        ..UNHARMED
    },
];
