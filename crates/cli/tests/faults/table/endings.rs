use super::*;

const COMPARE_HERE: &str = "compare --a {here} --b {here} --size 1m --buffered --op write --runtime 10ms --until 0.0001% --budget 1h";

const TUNE_DISK: &str = "tune {disk} --yes --knob read_ahead_kb=132 --request 64k --runtime 10ms --until 0.0001% --budget 1h";

section![
    "Ends in the middle",
    "Ctrl-C, SIGTERM and SIGHUP end every command in order and leave nothing. After kill -9 the next start removes what was left, \
 and never the file of a running process or of the user's.",
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
            Start(
                "run {here} --size 1m --buffered --threads 4 --op write --allocate extend --runtime 60"
            ),
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
        fault: "a signal during a comparison, a study of layers, a check, a trial of settings",
        given: &[
            Disk("disk"),
            Directory("state"),
            Text("state/tune.lock", ""),
            Mode("state/tune.lock", 0o600)
        ],
        steps: &[
            Start(
                "compare --a {here} --b {here} --size 1m --buffered --op write --until 0.0001% --budget 1h"
            ),
            Until(Written(4 * MIB)),
            Signal(SIGINT),
            Ended(INTERRUPTED),
            Start("stack {here} --size 1m"),
            Until(Written(MIB)),
            Signal(SIGTERM),
            Ended(INTERRUPTED),
            run(
                &[
                    "sweep {here} --size 1m --buffered --runtime 1s --repeats 1 --max-repeats 1 --history history"
                ],
                well(&[])
            ),
            Start("check {here} --history history --budget 1h"),
            Until(HasRead(4 * MIB)),
            Signal(SIGHUP),
            Ended(INTERRUPTED),
            Start(TUNE_DISK),
            Until(Set("disk", "read_ahead_kb", "132")),
            Signal(SIGINT),
            Ended(INTERRUPTED),
        ],
        leaves: &["history"],
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
            stop(
                fault(Read, 512 * KIB, Hold),
                "fio --name=a --directory=fs --size=1m --rw=read --direct=1 --cleanup"
            ),
            stop(
                fault(Read, 512 * KIB, Hold),
                "iozone -i 0 -i 1 -r 64k -s 1m -I --repeats 1 -f fs/iozone.tmp"
            ),
            stop(fault(Create, 0, Hold), "metadata fs --files 4 --rounds 1"),
            stop(fault(Create, 0, Hold), "postmark pm"),
            Met("fs"),
        ],
        ..UNHARMED
    },
    interrupts_at_any_moment = Row {
        fault: "signals at random moments, from a seed",
        given: &[
            Disk("disk"),
            Directory("state"),
            Text("state/tune.lock", ""),
            Mode("state/tune.lock", 0o600),
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
            Storm {
                seed: 7,
                times: 10,
                line: "diskspd -d60 -W0 -w100 -c1M {here}",
                signal: SIGINT
            },
            Storm { seed: 8, times: 10, line: COMPARE_HERE, signal: SIGHUP },
            Storm { seed: 9, times: 10, line: "stack {here} --size 1m", signal: SIGINT },
            Storm { seed: 10, times: 10, line: TUNE_DISK, signal: SIGTERM },
        ],
        ..UNHARMED
    },
    killed_at_any_moment = Row {
        fault: "kill -9 at random moments, from a seed; the next start cleans up",
        given: &[
            Disk("disk"),
            Directory("state"),
            Text("state/tune.lock", ""),
            Mode("state/tune.lock", 0o600),
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
            Storm {
                seed: 15,
                times: 10,
                line: "diskspd -d60 -W0 -w100 -c1M {here}",
                signal: SIGKILL
            },
            Storm { seed: 16, times: 10, line: COMPARE_HERE, signal: SIGKILL },
            Storm { seed: 17, times: 10, line: "stack {here} --size 1m", signal: SIGKILL },
            Storm { seed: 18, times: 10, line: TUNE_DISK, signal: SIGKILL },
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
            Start(
                "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=fs/out.json"
            ),
            Until(Hangs("fs")),
            Signal(SIGKILL),
            Ended(KILLED),
            Do(Faults("fs", &[fault(Sync, 0, Hang)])),
            Start(
                "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=fs/out.json"
            ),
            Until(Hangs("fs")),
            Signal(SIGKILL),
            Ended(KILLED),
            Met("fs"),
            Do(Faults("fs", &[])),
            run(&["metadata fs --files 4 --rounds 1"], well(&[])),
            run(
                &[
                    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=fs/out.json"
                ],
                well(&[])
            ),
        ],
        leaves: &["fs/.out.json.halfpower-output", "fs/out.json"],
    },
    killed_and_named = Row {
        fault: "kill -9 in the middle, the file is there: the next start removes it, and no living one's",
        given: &[Directory("at")],
        steps: &[
            Start("run {at} --size 1m --buffered --runtime 60"),
            Until(TestFile("at", MIB)),
            Signal(SIGKILL),
            Ended(KILLED),
            run(
                &["run {at} --size 1m --buffered --bytes 64k --repeats 1 --max-repeats 1"],
                well(&[])
            ),
            Until(Gone("at")),
            Start("run {at} --size 1m --buffered --runtime 60"),
            Until(TestFile("at", MIB)),
            run(
                &["run {at} --size 2m --buffered --bytes 64k --repeats 1 --max-repeats 1"],
                well(&[])
            ),
            Until(TestFile("at", MIB)),
            Signal(SIGINT),
            Ended(INTERRUPTED),
        ],
        ..UNHARMED
    },
    killed_while_a_setting_is_tried = Row {
        fault: "kill -9 while a setting of the kernel is another: the next command of any kind puts it back",
        given: &[
            Disk("disk"),
            Directory("state"),
            Text("state/tune.lock", ""),
            Mode("state/tune.lock", 0o600)
        ],
        steps: &[
            Start(TUNE_DISK),
            Until(Set("disk", "read_ahead_kb", "132")),
            Signal(SIGKILL),
            Ended(KILLED),
            run(&["twin list"], well(&[])),
        ],
        ..UNHARMED
    },
    killed_while_a_comparison_is_read = Row {
        fault: "kill -9 of a check: the history still opens, and holds what it held",
        given: &[],
        steps: &[
            run(
                &[
                    "sweep {here} --size 1m --buffered --runtime 1s --repeats 1 --max-repeats 1 --history history"
                ],
                well(&[])
            ),
            Storm {
                seed: 23,
                times: 10,
                line: "check {here} --history history --budget 1h",
                signal: SIGKILL
            },
            run(
                &["check {here} --history history --budget 1s"],
                Ends { codes: &[0, 3], words: &["entry 1"], failed_points: false }
            ),
        ],
        leaves: &["history"],
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
                &[
                    "run {disk} --op write --bytes 64k --repeats 1 --max-repeats 1 --destroy-data {disk}"
                ],
                well(&[])
            ),
        ],
        leaves: &["disk.img"],
    },
    a_killed_verification = Row {
        fault: "kill -9 of a run that verifies: its log says what must be there",
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
];
