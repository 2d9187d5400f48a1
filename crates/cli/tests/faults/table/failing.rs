use super::*;

section![
    "Storage that fails",
    "A request that fails makes a failed point that says which request and why, never a number. Wrong data are found and named. \
 No file is left, and what cannot be removed is named.",
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
        fault: "another process shortens the file during the run",
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
            Start(
                "run mine --buffered --engine mmap --pattern random --request 64k --runtime 60 --json"
            ),
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
                    "compare --a fs/mine --b fs/mine --bytes 1m",
                    "tune fs/mine --bytes 1m --knob depth=2 --yes --json",
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
                    "compare --a fs --b fs --size 1m --bytes 1m",
                    "tune fs --size 1m --bytes 1m --knob depth=2 --yes",
                    "stack fs --size 1m --budget 5s",
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
                    "compare --a fs --b fs --size 1m --bytes 1m",
                    "tune fs --size 1m --bytes 1m --knob depth=2 --yes",
                    "stack fs --size 1m --budget 5s",
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
            Text(
                "pm",
                "set location {here}/tmpfs\nset size 500000\nset number 40\nset transactions 10\nrun\n"
            )
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
                    "fio --name=x --size=64m --directory=ext4 --rw=write",
                    "postmark pm",
                ],
                fails(&["pace"])
            ),
            run(
                &[
                    "run ext4 --size 64m",
                    "study ext4 --size 64m",
                    "stack ext4 --size 64m",
                    "compare --a ext4 --b ext4 --size 64m",
                    "tune ext4 --size 64m --knob depth=2 --yes",
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
                &[
                    "run fs/mine --direct --request 64k --bytes 1m --repeats 1 --max-repeats 1 --json"
                ],
                failed_points(&["a read of 65536 bytes at offset"])
            ),
            Met("fs"),
        ],
        ..UNHARMED
    },
    short_writes = Row {
        fault: "writes take half of what was given",
        given: &[
            Faulty("fs", &[]),
            FaultyFile("fs", "mine"),
            Faults("fs", &[fault(Write, 512 * KIB, Half)])
        ],
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
                &[
                    "run fs --size 1m --direct --op write --bytes 1m --repeats 1 --max-repeats 1 --verify"
                ],
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
        // As fio leaves them.
        leaves: &["local-a-0-verify.state", "fs/a.0.0"],
    },
    lost_writes = Row {
        fault: "writes are confirmed and lost",
        given: &[Faulty("fs", &[])],
        steps: &[
            Do(Faults("fs", &[fault(Write, 512 * KIB, Lose)])),
            run(
                &[
                    "run fs --size 1m --direct --op write --bytes 1m --repeats 1 --max-repeats 1 --verify"
                ],
                fails(&["the data read back is not the data written"])
            ),
            run(
                &[
                    "fio --name=a --directory=fs --size=1m --rw=write --bs=4k --verify=crc32c --direct=1"
                ],
                fails(&["verif|rror"])
            ),
            Met("fs"),
        ],
        // As fio leaves them.
        leaves: &["local-a-0-verify.state", "fs/a.0.0"],
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
                &[
                    "fio --name=a --directory=fs --size=1m --rw=randwrite --bs=4k --verify=crc32c --direct=1"
                ],
                fails(&["verif|rror"])
            ),
            Met("fs"),
        ],
        // As fio leaves them.
        leaves: &["local-a-0-verify.state", "fs/a.0.0"],
    },
    no_new_files = Row {
        fault: "no file can be made: read-only after all",
        given: &[Faulty("fs", &[fault(Create, 0, Error(EROFS))])],
        steps: &[
            run(
                &[
                    "run fs --size 1m",
                    "study fs --size 1m --quick",
                    "stack fs --size 1m",
                    "compare --a fs --b fs --size 1m",
                    "tune fs --size 1m --knob depth=2 --yes",
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
            run(
                &["run fs --size 1m --buffered --bytes 64k --repeats 1 --max-repeats 1"],
                well(&[])
            ),
        ],
        ..UNHARMED
    },
    queued_reads_hang = Row {
        fault: "the same with requests outstanding in io_uring or libaio",
        given: &[Faulty("fs", &[])],
        steps: &[
            Do(Faults("fs", &[fault(Read, 512 * KIB, Hang)])),
            Start(
                "run fs --size 1m --direct --engine io_uring --request 64k --depth 4 --runtime 60"
            ),
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
            run(
                &["run fs --size 1m --buffered --bytes 64k --repeats 1 --max-repeats 1"],
                well(&[])
            ),
        ],
        ..UNHARMED
    },
    answers_come_late = Row {
        fault: "reads are answered late: they are waited for, and it is their latency",
        given: &[Faulty("fs", &[])],
        steps: &[
            Do(Faults("fs", &[fault(Read, 512 * KIB, Hold)])),
            Start(
                "run fs --size 1m --direct --request 64k --depth 4 --bytes 1m --repeats 1 --max-repeats 1"
            ),
            Until(Hangs("fs")),
            Do(Faults("fs", &[])),
            Do(Released("fs")),
            Ended(well(&[])),
            Do(Faults("fs", &[fault(Read, 512 * KIB, Hold)])),
            Start("fio --name=a --directory=fs --size=1m --rw=read --direct=1 --cleanup"),
            Until(Hangs("fs")),
            Do(Faults("fs", &[])),
            Do(Released("fs")),
            Ended(well(&[])),
            Met("fs"),
        ],
        ..UNHARMED
    },
    a_place_that_goes = Row {
        fault: "the directory is unmounted during the run, although it is in use: nothing is made in the directory below it",
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
                    "stack ro",
                    "compare --a ro --b ro",
                    "tune ro --knob depth=2 --yes",
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
];
