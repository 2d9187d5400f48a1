use super::*;

section![
    "Names",
    "A name cannot steer the terminal, need not be UTF-8, and does not make a file halfpower's: only its mark does.",
    steering = Row {
        fault: "names and options hold characters that steer a terminal",
        given: &[
            Directory("{steering}"),
            Text("pm", "set location {steering}\nset {steering}\nshow\nquit\n")
        ],
        steps: &[
            run(
                &[
                    "run {steering} --size 1m --buffered --bytes 64k --repeats 1 --max-repeats 1",
                    "sweep {steering} --size 1m --buffered --bytes 64k --request 4k,8k --repeats 1 --max-repeats 1",
                    "metadata {steering} --files 4 --rounds 1",
                    "fio --name=a --size=64k --rw=read --cleanup --filename={steering}/file",
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
                    "tune {steering}/file --yes",
                    "tune twin:gateway-1997 --knob {steering}",
                    "tune twin:gateway-1997 --knob depth={steering} --yes",
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
                    "stack {bytes}/file",
                    "compare --a {bytes}/file --b {bytes}/file",
                    "tune {bytes}/file --yes",
                    "tune --knob {bytes}",
                    "check {bytes}/file --history {bytes}/no",
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
                "stack {long}",
                "compare --a {long} --b {long}",
                "tune {long}",
                "tune twin:gateway-1997 --knob {long}",
                "check . --history {long}",
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
];
