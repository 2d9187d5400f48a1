use super::*;

const FIO_LONG: &str =
    "fio --name=a --filename=work --size=1m --rw=write --time_based --runtime=60";
const IOZONE_LONG: &str = "iozone -i 0 -f work -s 1m -r 4k --repeats 1000";
const SQLIO_LONG: &str = "sqlio -kW -frandom -s60 -BY --size 1m work";
const DISKSPD_LONG: &str = "diskspd -c1M -d60 -W0 -w100 work";

const READ_VM: &[&str] = &[
    "fio --name=a --filename=vm.img --rw=read --size=256k",
    "fio --name=a --filename=vm.img --rw=read --size=256k --openfiles=1 --invalidate=1",
    "iozone -i 1 -r 64k -s 256k -f vm.img",
    "sqlio -kR -frandom --runtime 20ms -b64 -BY vm.img",
    "diskspd -d1 -W0 -b64K vm.img",
    "run vm.img --buffered --bytes 64k --repeats 1 --max-repeats 1",
];

const WRITE_VM: &[&str] = &[
    "fio --name=a --filename=vm.img --rw=write --size=256k",
    "fio --name=a --filename=vm.img --rw=randrw --size=2m",
    "fio --name=a --filename=vm.img --rw=write --size=256k --overwrite=1",
    "fio --name=a --filename=vm.img --rw=write --size=256k --create_only=1",
    "fio --name=a --filename=vm.img --rw=randwrite --size=256k --verify=crc32c --verify_state_save=1",
    "fio --name=a --filename=other:vm.img --rw=write --size=256k --nrfiles=2 --openfiles=1",
    "fio --name=a --directory={here} --filename=vm.img --rw=write --size=256k",
    "fio --name=a --filename=vm.img --rw=read --size=256k --unlink=1",
    "iozone -i 0 -r 64k -s 256k -f vm.img",
    "iozone -i 0 -i 1 -w -r 64k -s 2m -f vm.img",
    "sqlio -kW -frandom --runtime 20ms -b64 -BY --size 256k vm.img",
    "diskspd -c256K -d1 -W0 -w100 -b64K vm.img",
    "run vm.img --buffered --op write",
    "sweep vm.img --buffered --op read,mix",
    "compare --a vm.img --b vm.img --op write",
    "tune vm.img --op write --knob depth=8 --yes",
];

/// Renames the file of a killed command and changes its data: it is the user's from then on.
const RENAMED: crate::play::Step = Do(Shell("mv work vm.img && cat precious >vm.img"));
const UNCHANGED: crate::play::Step = Do(Shell("cmp precious vm.img"));

const KEPT: &[&str] = &[
    "fio --name=a --filename={at}/fio --size=256k --rw=write",
    "fio --name=a --directory={at} --size=256k --rw=randrw --nrfiles=2",
    "fio --name=made --directory={at} --size=256k --rw=write --create_only=1",
    "iozone -i 0 -w -f {at}/iozone -s 256k -r 64k --repeats 1",
    "sqlio -kW -frandom --runtime 20ms -b64 -BY --size 256k {at}/sqlio",
    "diskspd -c256K -d1 -W0 -w100 -b64K {at}/diskspd",
];

macro_rules! changed {
    ($change:literal) => {
        Do(Shell(concat!(
            "rm -rf copy && mkdir copy && for one in at/*; do touch -r $one old && ",
            $change,
            " && cp $one copy/; done"
        )))
    };
}

const STAY: crate::play::Step =
    Do(Shell("for one in copy/*; do cmp $one at/${one#copy/} || exit 1; done"));

const ANEW: crate::play::Step = Do(Shell("rm -rf at/*"));

const LEFT: &[&str] = &["at/*", "copy*", "old"];

section![
    "The user's bytes",
    "A file under a name that the user chose is the user's after a kill. One that was left on purpose is written again only if it is certain \
 that nothing has changed it, and nothing else may write it. Of a directory of many files only those go that halfpower made: the rest stays, \
 on other mounts too, and is named.",
    killed_files_become_the_users = Row {
        fault: "kill -9 while a file under a name of the user's choice is written; then it is renamed and other data are put into it",
        given: &[File("precious")],
        steps: &[
            Start(FIO_LONG),
            Until(Long("work", MIB)),
            Until(Written(2 * MIB)),
            Signal(SIGKILL),
            Ended(KILLED),
            RENAMED,
            run(READ_VM, well(&[])),
            run(WRITE_VM, refused(&["vm.img"])),
            UNCHANGED,
            Start(IOZONE_LONG),
            Until(Long("work", MIB)),
            Signal(SIGKILL),
            Ended(KILLED),
            RENAMED,
            run(READ_VM, well(&[])),
            run(WRITE_VM, refused(&["vm.img"])),
            UNCHANGED,
            Start(SQLIO_LONG),
            Until(Long("work", MIB)),
            Signal(SIGKILL),
            Ended(KILLED),
            RENAMED,
            run(READ_VM, well(&[])),
            run(WRITE_VM, refused(&["vm.img"])),
            UNCHANGED,
            Start(DISKSPD_LONG),
            Until(Long("work", MIB)),
            Signal(SIGKILL),
            Ended(KILLED),
            RENAMED,
            run(READ_VM, well(&[])),
            run(WRITE_VM, refused(&["vm.img"])),
            UNCHANGED,
        ],
        leaves: &["vm.img"],
    },
    killed_files_are_refused = Row {
        fault: "kill -9 while a file under a name of the user's choice is written; the same command again, then with consent",
        given: &[],
        steps: &[
            Start(FIO_LONG),
            Until(Long("work", MIB)),
            Signal(SIGKILL),
            Ended(KILLED),
            run(
                &[FIO_LONG, IOZONE_LONG, SQLIO_LONG, DISKSPD_LONG],
                refused(&["work", "--destroy-data"])
            ),
            run(
                &[
                    "fio --name=a --filename=work --size=1m --rw=write --destroy-data=work",
                    "iozone -i 0 -f work -s 1m -r 64k --destroy-data work",
                    "sqlio -kW -frandom --runtime 20ms -b64 -BY work --destroy-data work",
                    "diskspd -d1 -W0 -w100 -b64K work --destroy-data work",
                ],
                well(&[])
            ),
        ],
        leaves: &["work"],
    },
    named_files_of_the_killed = Row {
        fault: "kill -9 at random moments, from a seed, while files under names of the user's choice are made: nothing else is left",
        given: &[],
        steps: &[
            Storm {
                seed: 21,
                times: 1,
                line: "fio --name=a --filename=work1 --size=1m --rw=randwrite --time_based --runtime=60",
                signal: SIGKILL
            },
            Storm {
                seed: 22,
                times: 1,
                line: "fio --name=a --filename=work2 --size=1m --rw=read --time_based --runtime=60",
                signal: SIGKILL
            },
            Storm {
                seed: 23,
                times: 1,
                line: "iozone -a -n 64k -g 1m -f work3 --repeats 1000",
                signal: SIGKILL
            },
            Storm {
                seed: 24,
                times: 1,
                line: "sqlio -kW -frandom -s60 -BY --size 1m work4",
                signal: SIGKILL
            },
            Storm {
                seed: 25,
                times: 1,
                line: "diskspd -c1M -d60 -W0 -w100 work5",
                signal: SIGKILL
            },
            run(
                &["run {here} --size 1m --buffered --bytes 64k --repeats 1 --max-repeats 1"],
                well(&[])
            ),
            Do(Shell("rm -f work?")),
        ],
        ..UNHARMED
    },
    kept_files_are_used_again = Row {
        fault: "a file that was left on purpose is written again, and stays",
        given: &[Directory("at")],
        steps: &[
            run(KEPT, well(&[])),
            run(KEPT, well(&[])),
            Do(Shell("test -z \"$(find at -name '.*')\""))
        ],
        leaves: &["at/*"],
    },
    kept_files_that_changed = Row {
        fault: "a file that was left on purpose gets other data of the same length; its times are set back; it is linked, renamed, copied over",
        given: &[Directory("at")],
        steps: &[
            run(KEPT, well(&[])),
            changed!("printf x | dd of=$one conv=notrunc status=none"),
            run(KEPT, refused(&["at/"])),
            STAY,
            ANEW,
            run(KEPT, well(&[])),
            changed!("printf x | dd of=$one conv=notrunc status=none && touch -r old $one"),
            run(KEPT, refused(&["at/"])),
            STAY,
            ANEW,
            run(KEPT, well(&[])),
            changed!(
                "cp -a $one other && printf x | dd of=other conv=notrunc status=none && touch -r old other && mv other $one"
            ),
            run(KEPT, refused(&["at/"])),
            STAY,
            ANEW,
            run(KEPT, well(&[])),
            changed!(
                "cp -a $one other && printf x | dd of=other conv=notrunc status=none && touch -r old other && cp -p other $one && rm other"
            ),
            run(KEPT, refused(&["at/"])),
            STAY,
            ANEW,
            run(KEPT, well(&[])),
            changed!("ln $one copy/link && rm copy/link"),
            run(KEPT, refused(&["at/"])),
            STAY,
        ],
        leaves: LEFT,
    },
    kept_files_that_are_open = Row {
        fault: "another program has a file that was left on purpose open for writing",
        given: &[Directory("at")],
        steps: &[
            run(&["fio --name=a --filename={at}/fio --size=256k --rw=write"], well(&[])),
            Do(Shell("(exec 9<>at/fio; sleep 20 >/dev/null 2>&1 & echo $! >at/pid)")),
            run(&["fio --name=a --filename={at}/fio --size=256k --rw=write"], refused(&["at/fio"])),
            Do(Shell("kill $(cat at/pid) && rm at/pid")),
        ],
        leaves: &["at/*"],
    },
    kept_files_without_attributes = Row {
        fault: "the same on a file system without attributes: a hidden file holds the mark",
        given: &[Volume("at", "-t ramfs halfpower-test")],
        steps: &[
            run(KEPT, well(&[])),
            run(KEPT, well(&[])),
            changed!("printf x | dd of=$one conv=notrunc status=none && touch -r old $one"),
            run(KEPT, refused(&["at/"])),
            STAY,
            Do(Shell("rm at/*")),
            run(KEPT, well(&[])),
            changed!(
                "cp -a $one copyother && printf x | dd of=copyother conv=notrunc status=none && touch -r old copyother && rm $one && cp -a copyother $one"
            ),
            run(KEPT, refused(&["at/"])),
            STAY,
        ],
        leaves: &["at/.fio.halfpower", "at/*", "copy*", "old"],
    },
    kept_files_with_coarse_times = Row {
        fault: "the file system counts its times in seconds, so a change may go unseen: a file that was left on purpose is the user's",
        given: &[Disk("disk"), Made("disk", "mkfs.ext4 -q -F -I 128"), Volume("at", "{disk}")],
        steps: &[run(KEPT, well(&[])), changed!("true"), run(KEPT, refused(&["at/"])), STAY,],
        leaves: &["at/*", "copy*", "old", "disk.img"],
    },
    kept_files_without_times = Row {
        fault: "the times of the file system never change: a file that was left on purpose is the user's",
        given: &[Faulty("fs", &[])],
        steps: &[
            run(&["fio --name=a --filename=fs/data --size=256k --rw=write"], well(&[])),
            run(
                &["fio --name=a --filename=fs/data --size=256k --rw=write"],
                refused(&["fs/data", "--destroy-data"])
            ),
        ],
        leaves: &["fs/data"],
    },
    an_output_that_changed = Row {
        fault: "an output of halfpower's gets other content of the same length, and its times are set back; with and without attributes",
        given: &[Volume("at", "-t ramfs halfpower-test"), POSTMARK],
        steps: &[
            run(
                &["fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=out.json"],
                well(&[])
            ),
            Do(Shell(
                "touch -r out.json old && printf x | dd of=out.json conv=notrunc status=none && touch -r old out.json && cp out.json copy"
            )),
            run(DOCUMENTS, refused(&["out.json", "--force"])),
            Do(Shell("cmp out.json copy")),
            run(
                &[
                    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=at/out.json"
                ],
                well(&[])
            ),
            Do(Shell(
                "touch -r at/out.json old && printf x | dd of=at/out.json conv=notrunc status=none && touch -r old at/out.json && cp at/out.json copy"
            )),
            run(
                &[
                    "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --json=at/out.json"
                ],
                refused(&["out.json", "--force"])
            ),
            Do(Shell("cmp at/out.json copy")),
        ],
        leaves: &["at/.out.json.halfpower-output", "at/*", "copy", "old", "out.json"],
    },
    a_leftover_directory_with_the_users_files = Row {
        fault: "the user puts files, links and a mount into the directory that a killed run left: they stay and are named, the rest goes",
        given: &[Directory("mine"), File("mine/7"), File("mine/notes.txt"), POSTMARK],
        steps: &[
            Start("metadata {here} --files 20000 --rounds 1000"),
            Until(Long("halfpower-*/s9", 0)),
            Signal(SIGKILL),
            Ended(KILLED),
            Do(Shell(
                "cd halfpower-*.files && mkdir s77 s78 && echo mine >notes.txt && echo mine >s78/thesis && ln -s ../mine s79"
            )),
            Do(BoundOver("mine", "halfpower-*/s77")),
            run(
                &["metadata {here} --files 4 --rounds 1", "postmark pm"],
                well(&["notes.txt", "cannot remove"])
            ),
            Do(Shell(
                "cd halfpower-*.files && cat notes.txt s78/thesis && test -L s79 && test ! -e s0 && cmp s77/7 ../mine/7"
            )),
        ],
        leaves: &["halfpower-*"],
    },
    a_directory_with_the_users_files = Row {
        fault: "the user puts a file and a mount into the directory of a run: they stay and are named, however the run ends",
        given: &[
            Directory("mine"),
            File("mine/7"),
            Text("much", "set location {here}\nset number 20000\nset transactions 200000\nrun\n")
        ],
        steps: &[
            Start("metadata {here} --files 20000 --rounds 1000"),
            Until(Long("halfpower-*/s9", 0)),
            Do(Shell(
                "cd halfpower-*.files && mkdir s77 && echo mine >notes.txt && echo mine >s3/thesis"
            )),
            Do(BoundOver("mine", "halfpower-*/s77")),
            Signal(SIGINT),
            Ended(Ends {
                words: &["notes.txt", "s77", "s3/thesis", "cannot remove"],
                ..INTERRUPTED
            }),
            Do(Shell("umount halfpower-*.files/s77 && rm -r halfpower-*.files")),
            Start("postmark much"),
            Until(Long("halfpower-*/", 0)),
            Do(Shell("echo mine >$(echo halfpower-*.files)/notes.txt")),
            Signal(SIGTERM),
            Ended(Ends { words: &["notes.txt", "cannot remove"], ..INTERRUPTED }),
            Do(Shell("rm -r halfpower-*.files")),
            Start("metadata {here} --files 2000 --rounds 30"),
            Until(Long("halfpower-*/s9", 0)),
            Do(Shell("echo mine >$(echo halfpower-*.files)/notes.txt")),
            Ended(well(&["notes.txt", "cannot remove"])),
            Do(Shell(
                "cat halfpower-*.files/notes.txt && test $(ls halfpower-*.files) = notes.txt"
            )),
        ],
        leaves: &["halfpower-*"],
    },
];
