use super::*;

const AT_HOME: By = under(
    "with a read-only home",
    &[
        "env",
        "-u",
        "HALFPOWER_HISTORY",
        "-u",
        "HALFPOWER_STATE",
        "-u",
        "XDG_DATA_HOME",
        "HOME={ro}",
    ],
);

const IN_RO: By = under("with a read-only state directory", &["env", "HALFPOWER_STATE={ro}/state"]);

const PROFILE: &str = "<Profile><TimeSpans><TimeSpan><Duration>1</Duration><Warmup>0</Warmup><Targets><Target>\
 <Path>twin:gateway-1997</Path></Target></Targets></TimeSpan></TimeSpans></Profile>";

section![
    "Outputs",
    "An output never replaces what halfpower did not make, never what is measured, and follows no link to a file. It is tried \
 before anything is measured. If it cannot be written in the end, the answer is printed all the same and the document is \
 kept among the temporary files.",
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
            run(
                &["fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=out.json"],
                well(&[])
            ),
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
                "tune twin:gateway-1997 --knob depth=8 --output no/out.json",
                "compare --a twin:gateway-1997 --b twin:gateway-1997 --html no/out.json",
                "iozone -i 0 -s 64 -b no/out.json",
            ],
            refused(&["no/out.json", "no such directory"])
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
                "tune twin:gateway-1997 --knob depth=8 --output ro/out.json",
                "compare --a twin:gateway-1997 --b twin:gateway-1997 --csv ro/out.json",
                "twin whatif gateway-1997 --set disks=2 --output ro/out",
                "iozone -i 0 -s 64 -b ro/out.json",
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
                "tune twin:gateway-1997 --knob depth=8 --output {here}/out.json",
                "compare --a twin:gateway-1997 --b twin:gateway-1997 --html {here}/out.json",
                "twin validate --output {here}/out",
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
                "tune twin:gateway-1997 --knob depth=8 --output full/out.json",
                "compare --a twin:gateway-1997 --b twin:gateway-1997 --runtime 10ms --html full/out.json",
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
                "tune twin:gateway-1997 --output out.json",
                "compare --a twin:gateway-1997 --b twin:gateway-1997 --runtime 10ms --html out.json",
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
                "tune --force mine --knob depth=8 --output again",
                "compare --force --a mine --b mine --html again",
                "compare --force --a twin:gateway-1997 --b mine --csv mine",
            ],
            refused(&["it is measured"])
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
                "tune --force {disk} --knob depth=8 --output disk.img",
                "compare --force --a {disk} --b {disk} --html disk.img",
            ],
            refused(&["it is measured, or is under"])
        )],
        ..UNHARMED
    },
    what_is_read = Row {
        fault: "the output is a file that is read, even with --force: jobs, commands, parameters, a profile, a machine, the history",
        given: &[
            Text("jobs", "[a]\nfilename=twin:gateway-1997\nsize=1m\nrw=read\n"),
            POSTMARK,
            Text("parameters", "twin:gateway-1997 1 0x0 1\n"),
            Text("profile.xml", PROFILE),
            Text("machine.toml", ""),
            Noise("history"),
        ],
        steps: &[
            run(
                &[
                    "fio --force jobs --json=jobs",
                    "fio --force jobs --output=jobs",
                    "postmark --force pm --json pm",
                    "sqlio --force -kR -s1 -Fparameters --json parameters",
                    "diskspd --force -Xprofile.xml --json profile.xml",
                    "tune --force twin:gateway-1997 --knob depth=8 --output history --history history",
                    "compare --force --a twin:gateway-1997 --b twin:gateway-1997 --html history --history history",
                ],
                refused(&["jobs|pm|parameters|profile.xml|history", "is read"])
            ),
            run(
                &["tune --force twin:machine.toml,disks=2 --knob depth=8 --output machine.toml"],
                refused(&["machine.toml"])
            ),
        ],
        ..UNHARMED
    },
    read_within = Row {
        fault: "the same with files that are read later: a job file that another includes, a log of requests, data of writes, a script, a trace, results",
        given: &[
            Text("jobs", "[a]\nfilename=twin:gateway-1997\nsize=1m\nrw=read\n"),
            Text("all", "include jobs\n"),
            Text("pattern", "abc"),
            Text("script", "IOR START\ntestFile=data\nRUN\nIOR STOP\n"),
            Text("trace", "fio version 3 iolog\n0 f add\n1 f open\n2 f read 0 4096\n3 f close\n"),
        ],
        steps: &[run(
            &[
                "fio --force all --json=jobs",
                "fio --force all --output=jobs",
                "fio --force --name=a --filename=f --size=64k --rw=write --buffer_pattern='pattern' --json=pattern",
                "diskspd --force -d1 -W0 -w100 -c64K -Z4K,pattern --json pattern f",
                "ior --force -f script --json script",
                "tune --force . --replay trace --output trace",
                "profile --force trace --html trace",
            ],
            refused(&["jobs|pattern|script|trace", "read"])
        )],
        ..UNHARMED
    },
    one_name_for_two = Row {
        fault: "two outputs have one name",
        given: &[],
        steps: &[run(
            &[
                "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --output=out --json=./out",
                "iozone -i 0 -s 64 -b out --json out",
                "compare --a twin:gateway-1997 --b twin:gateway-1997 --html out --csv out",
            ],
            refused(&["names this file, too"])
        )],
        ..UNHARMED
    },
    a_tasks_file = Row {
        fault: "the output is the file of one of IOR's tasks, even with --force",
        given: &[File("t.00000000"), File("t.00000001")],
        steps: &[run(
            &[
                "ior --force --tasks 2 -F -r -b 64k -t 64k -o t --json t.00000001",
                "ior --force --tasks 2 -F -w -b 64k -t 64k -D 1 -o t -O stoneWallingStatusFile=t.00000000",
            ],
            refused(&["it is measured"])
        )],
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
            refused(&[
                "--force|it is measured|what is compared|is read",
                "out.html|results.csv|others.csv"
            ])
        )],
        ..UNHARMED
    },
    a_history_that_is_none = Row {
        fault: "the history is a file of the user's, a directory, read-only, full, or another user's: the result is given all the same, and that it is not kept is said",
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
                &[
                    "history --history noise",
                    "history --history directory",
                    "check . --history noise"
                ],
                no_result(&["noise|directory"])
            ),
        ],
        leaves: &["full/history"]
    },
    a_read_only_home = Row {
        fault: "the home directory is read-only: the result is given all the same, and that it is not kept is said",
        given: &[Tmpfs("ro", "1m"), ReadOnly("ro")],
        steps: &[
            Run(
                AT_HOME,
                &[
                    "run twin:gateway-1997 --runtime 10ms",
                    "compare --a twin:gateway-1997 --b twin:gateway-1997 --runtime 10ms",
                    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m",
                    "sqlio -kR -s1 -b64 twin:gateway-1997",
                ],
                well(&["this result is not in the history", "Read-only file system"])
            ),
            Run(
                AT_HOME,
                &[
                    "tune twin:gateway-1997 --bytes 1m --knob depth=8 --yes",
                    "stack twin:gateway-1997"
                ],
                well(&[])
            ),
            Run(AT_HOME, &["history", "check ."], refused(&["history"])),
        ],
        ..UNHARMED
    },
    a_state_that_cannot_be = Row {
        fault: "the journal of settings cannot be written, or is another user's: no setting of the kernel is touched, and the workload's own are tried",
        given: &[Disk("disk"), File("mine"), Tmpfs("ro", "1m"), ReadOnly("ro")],
        steps: &[
            Run(
                IN_RO,
                &["tune {disk} --yes --knob read_ahead_kb=132 --bytes 64k --budget 1s"],
                fails(&["ro/state"])
            ),
            Run(
                IN_RO,
                &[
                    "tune mine --yes --knob request=8k --buffered --bytes 64k --until 100% --budget 1s"
                ],
                well(&[])
            ),
            Do(Text("state", "a file of the user's")),
            run(
                &["tune {disk} --yes --knob read_ahead_kb=132 --bytes 64k --budget 1s"],
                fails(&["state"])
            ),
        ],
        leaves: &["state"],
    },
    a_strange_journal = Row {
        fault: "the file under the journal's name is not a journal: every command says so and goes on, and nothing is set",
        given: &[
            Disk("disk"),
            Directory("state"),
            Text("state/tune.lock", ""),
            Mode("state/tune.lock", 0o600),
            Noise("state/tune.journal")
        ],
        steps: &[
            run(
                &["twin list", "run twin:gateway-1997 --runtime 10ms"],
                well(&["state/tune.journal", "not a journal"])
            ),
            run(
                &["tune {disk} --yes --knob read_ahead_kb=132 --bytes 64k --budget 1s"],
                refused(&["state/tune.journal", "not a journal"])
            ),
        ],
        ..UNHARMED
    },
    appears_meanwhile = Row {
        fault: "a file of the user's appears under the output's name during the run",
        given: &[File("mine"), Directory("tmp")],
        steps: &[
            Start(
                "fio --name=a --filename=mine --rw=read --time_based --runtime=60 --json=out.json"
            ),
            Until(HasRead(4 * MIB)),
            Do(Text("out.json", "the user's own words")),
            Signal(SIGINT),
            Ended(Ends { codes: &[1, 130], words: &[], failed_points: false }),
        ],
        leaves: &["out.json", "tmp/*"],
    },
    nobody_reads = Row {
        fault: "standard output is a pipe whose reader has gone: the command ends quietly",
        given: &[POSTMARK],
        steps: &[
            run(BASELINE, well(&[])),
            Run(
                By { words: "into a pipe without a reader", stdout: Unread, ..PLAIN },
                CHECK,
                well(&[])
            ),
            Run(
                By { words: "into a pipe without a reader", stdout: Unread, ..PLAIN },
                COMPARISONS,
                well(&[])
            ),
            Run(
                By { words: "into a pipe without a reader", stdout: Unread, ..PLAIN },
                IN_HERE,
                well(&[])
            ),
            Run(
                By { words: "into a pipe without a reader", stdout: Unread, ..PLAIN },
                &["twin list", "fio --help"],
                well(&[])
            ),
        ],
        leaves: &["history"],
    },
    a_full_standard_output = Row {
        fault: "standard output is full",
        given: &[POSTMARK],
        steps: &[
            run(BASELINE, well(&[])),
            Run(
                By { words: "into /dev/full", stdout: FullSink, ..PLAIN },
                CHECK,
                fails(&["No space left"])
            ),
            Run(
                By { words: "into /dev/full", stdout: FullSink, ..PLAIN },
                COMPARISONS,
                fails(&["No space left"])
            ),
            Run(
                By { words: "into /dev/full", stdout: FullSink, ..PLAIN },
                IN_HERE,
                fails(&["No space left"])
            ),
        ],
        leaves: &["history"],
    },
    a_closed_standard_output = Row {
        fault: "standard output is closed",
        given: &[],
        steps: &[
            run(BASELINE, well(&[])),
            Run(
                under("with >&-", &["sh", "-c", "exec \"$0\" \"$@\" >&-"]),
                &[
                    "run twin:gateway-1997 --runtime 10ms --json",
                    "twin list",
                    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m",
                    "tune twin:gateway-1997 --bytes 1m --knob depth=8 --yes",
                    "compare --a twin:gateway-1997 --b twin:gateway-1997,disks=2 --runtime 10ms",
                    "stack twin:gateway-1997",
                    "check twin:gateway-1997 --history history",
                ],
                well(&[])
            ),
        ],
        leaves: &["history"],
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
];
