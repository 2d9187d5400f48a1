use super::*;

section![
    "Corruption while requests overlap",
    "Data are judged by what may legally be there: if writes overlap one another or a read, each byte must be that of one of them. A race \
 never counts as a fault, and faults are found in races, too. Bytes that cannot be judged are counted and reported.",
    races_are_no_faults = Row {
        fault: "reads overlap writes of the same block, and writes one another, and nothing is wrong",
        given: &[Tmpfs("tmp", "64m"), Ext4("disk")],
        steps: &[run(
            &[
                "run tmp --size 64k --op mix --read-percent 50 --pattern zipf:1.1 --request 4k --buffered --engine mmap --threads 4 --runtime 300ms --repeats 1 --max-repeats 1 --verify",
                "run tmp --size 64k --op mix --read-percent 50 --pattern uniform --request 64k --buffered --engine mmap --threads 4 --runtime 2s --repeats 1 --max-repeats 1 --verify",
                "run tmp --size 64k --op mix --read-percent 50 --pattern zipf:1.1 --request 4k --buffered --engine threads --depth 8 --runtime 300ms --repeats 1 --max-repeats 1 --verify",
                "run disk --size 256k --op mix --read-percent 50 --pattern uniform --request 64k --engine io_uring --depth 16 --runtime 300ms --repeats 1 --max-repeats 1 --verify",
                "run disk --size 256k --op mix --read-percent 50 --pattern uniform --request 64k --engine libaio --depth 16 --threads 2 --runtime 300ms --repeats 1 --max-repeats 1 --verify",
            ],
            well(&["the data read is the data written"])
        )],
        ..UNHARMED
    },
    little_is_judged = Row {
        fault: "the run did not write most of the data it reads, so it cannot judge them",
        given: &[Tmpfs("tmp", "64m")],
        steps: &[run(
            &[
                "run tmp --size 8m --op mix --read-percent 95 --pattern random --request 4k --buffered --bytes 1m --repeats 1 --max-repeats 1 --verify",
            ],
            well(&["more could not be judged", "read could be judged"])
        )],
        ..UNHARMED
    },
    flips_in_races = Row {
        fault: "one bit of each block read is wrong while requests overlap",
        given: &[Faulty("fs", &[fault(Read, 0, Flip)])],
        steps: &[
            run(
                &[
                    "run fs --size 64k --op mix --pattern zipf:1.1 --request 4k --engine threads --depth 8 --runtime 200ms --repeats 1 --max-repeats 1 --verify",
                    "run fs --size 64k --op mix --pattern zipf:1.1 --request 4k --engine io_uring --depth 8 --runtime 200ms --repeats 1 --max-repeats 1 --verify",
                    "run fs --size 64k --op mix --pattern zipf:1.1 --request 4k --engine libaio --depth 8 --runtime 200ms --repeats 1 --max-repeats 1 --verify",
                    "run fs --size 64k --op mix --pattern zipf:1.1 --request 4k --engine sync --threads 4 --runtime 200ms --repeats 1 --max-repeats 1 --verify",
                ],
                fails(&["flipped"])
            ),
            Met("fs"),
        ],
        ..UNHARMED
    },
    stale_blocks_in_races = Row {
        fault: "while requests overlap, writes begin to be confirmed and lost: the blocks hold older data",
        given: &[Faulty("fs", &[])],
        steps: &[
            Start(
                "run fs --size 64k --op mix --pattern zipf:1.1 --request 4k --engine threads --depth 8 --runtime 2s --repeats 1 --max-repeats 1 --verify",
            ),
            Until(Written(MIB)),
            Do(Faults("fs", &[fault(Write, 0, Lose)])),
            Ended(fails(&["lost"])),
            Met("fs"),
        ],
        ..UNHARMED
    },
    misplaced_writes_in_races = Row {
        fault: "writes land 4 KiB further on while requests overlap",
        given: &[Faulty("fs", &[fault(Write, 32 * KIB, Misplace)])],
        steps: &[
            run(
                &[
                    "run fs --size 64k --op mix --pattern zipf:1.1 --request 4k --engine threads --depth 8 --runtime 200ms --repeats 1 --max-repeats 1 --verify",
                    "run fs --size 64k --op write --pattern uniform --request 4k --engine io_uring --depth 16 --runtime 200ms --repeats 1 --max-repeats 1 --verify",
                ],
                fails(&["misdirected"])
            ),
            Met("fs"),
        ],
        ..UNHARMED
    },
    torn_writes_in_races = Row {
        fault: "while requests overlap, writes begin to be confirmed with half of each done",
        given: &[Faulty("fs", &[])],
        steps: &[
            Start(
                "run fs --size 128k --op mix --pattern zipf:1.1 --request 16k --engine threads --depth 8 --runtime 2s --repeats 1 --max-repeats 1 --verify",
            ),
            Until(Written(MIB)),
            Do(Faults("fs", &[fault(Write, 0, Tear)])),
            Ended(fails(&["torn"])),
            Met("fs"),
        ],
        ..UNHARMED
    },
    a_kill_among_races = Row {
        fault: "kill -9 while writes of the same blocks overlap: torn requests do not count as faults, and damage is found",
        given: &[File("mine")],
        steps: &[
            Start(
                "run mine --destroy-data mine --op mix --pattern zipf:1.1 --region 256k --request 16k --engine mmap --threads 4 --buffered --runtime 60 --verify --verify-log log",
            ),
            Until(Long("log", 100_000)),
            Signal(SIGKILL),
            Ended(KILLED),
            run(&["verify log mine"], well(&["the data read back is the data written"])),
            Do(Bytes("mine", 0, &[7; 256 << 10])),
            run(&["verify log mine"], fails(&["the data read back is not the data written"])),
        ],
        leaves: &["mine", "log"],
    },
    several_writers_of_a_file = Row {
        fault: "several jobs that verify, and others, write one file: no job reports another's blocks as faults, and bytes left unjudged are reported",
        given: &[File("mine")],
        steps: &[
            run(
                &[
                    "fio --destroy-data=mine --verify_state_save=0 --filename=mine --size=256k --rw=write --verify=crc32c --name=a --bs=4k --name=b --bs=16k",
                    "fio --destroy-data=mine --verify_state_save=0 --filename=mine --size=256k --rw=write --bs=4k --name=a --verify=crc32c --name=b --verify=xxhash",
                    "fio --destroy-data=mine --verify_state_save=0 --filename=mine --size=256k --rw=randwrite --bsrange=1k-16k --verify=crc32c --numjobs=2 --name=a",
                ],
                well(&["could not be judged"])
            ),
            run(
                &[
                    "fio --destroy-data=mine --verify_state_save=0 --filename=mine --size=256k --rw=randwrite --bs=4k --verify=crc32c --numjobs=4 --io_size=2m --verify_backlog=4 --ioengine=mmap --name=a",
                    "fio --destroy-data=mine --verify_state_save=0 --filename=mine --size=256k --rw=randrw --bs=4k --verify=md5 --numjobs=4 --loops=8 --verify_backlog=4 --name=a",
                    "fio --destroy-data=mine --verify_state_save=0 --filename=mine --size=256k --rw=randwrite --bs=4k --name=a --verify=crc32c --name=b",
                    "fio --destroy-data=mine --verify_state_save=0 --filename=mine --size=256k --rw=randwrite --bs=4k --verify=crc32c --norandommap --io_size=4m --ioengine=io_uring --iodepth=16 --verify_backlog=16 --name=a",
                    "fio --destroy-data=mine --verify_state_save=0 --filename=mine --size=256k --rw=randwrite --bs=4k --verify=crc32c --norandommap --io_size=4m --ioengine=psync --io_submit_mode=offload --iodepth=8 --name=a",
                ],
                well(&[])
            ),
        ],
        leaves: &["mine"],
    },
    flips_with_several_writers = Row {
        fault: "one bit of each block read is wrong while several jobs write one file",
        given: &[Faulty("fs", &[fault(Read, 0, Flip)]), FaultyFile("fs", "mine")],
        steps: &[
            run(
                &[
                    "fio --destroy-data=fs/mine --verify_state_save=0 --filename=fs/mine --size=256k --rw=randwrite --bs=4k --verify=crc32c --numjobs=4 --name=a",
                    "fio --destroy-data=fs/mine --verify_state_save=0 --filename=fs/mine --size=256k --rw=randwrite --bs=4k --verify=crc32c --norandommap --ioengine=io_uring --iodepth=8 --name=a",
                ],
                fails(&["verify"])
            ),
            Met("fs"),
        ],
        leaves: &["fs/mine"],
    },
];
