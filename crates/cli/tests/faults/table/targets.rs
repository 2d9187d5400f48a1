use super::*;

section![
    "Targets",
    "Existing data is only read, unless --destroy-data names it again. A device or file that is mounted, held or under something \
 else is never written; one that has a signature only with --destroy-signature. Everything is checked before the first byte \
 is written.",
    a_users_file_is_read = Row {
        fault: "the target is a file of the user's: reading changes nothing",
        given: &[File("mine")],
        steps: &[run(READ_MINE, well(&[]))],
        ..UNHARMED
    },
    a_users_file = Row {
        fault: "a run would write a file of the user's that is not named after --destroy-data",
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
                "stack mine --destroy-data other",
                "compare --a mine --b mine --op write --destroy-data other",
                "tune mine --op write --knob depth=8 --yes --destroy-data other",
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
        fault: "a run would write a device that is not named after --destroy-data",
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
    a_member_twice = Row {
        fault: "a stripe names one file or device twice, also under another name",
        given: &[File("mine"), HardLink("link", "mine"), Disk("disk")],
        steps: &[run(
            &[
                "run mine link",
                "run mine ./mine --op write --verify --destroy-data mine --destroy-data ./mine",
                "sweep {disk} {disk} --op write --destroy-data {disk}",
                "study mine link --quick --budget 5s --output out",
            ],
            refused(&["the same file or device as"])
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
                "compare --a {disk} --b {disk}{blank}--request{blank}3000 --op write --destroy-data {disk}",
                "tune {disk} --op write --request 3000 --knob depth=8 --yes --destroy-data {disk}",
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
        fault: "a disk whose file has a mounted loop device further on",
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
        fault: "a partition, while a mounted loop device is on the same bytes of the file under its disk",
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
        fault: "a partition whose disk has a mounted loop device over the same bytes",
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
        fault: "the device has a file system",
        given: &[Disk("disk"), Made("disk", "mkfs.ext4 -q -O ^has_journal"), Directory("out")],
        steps: &[run(
            DESTROY_DISK,
            refused(&["ext4 file system|ext2 file system", "--destroy-signature", "wipefs"])
        )],
        ..UNHARMED
    },
    swap_space = Row {
        fault: "the device has swap space",
        given: &[Disk("disk"), Made("disk", "mkswap -q"), Directory("out")],
        steps: &[run(DESTROY_DISK, refused(&["swap space", "--destroy-signature"]))],
        ..UNHARMED
    },
    a_partition_table = Row {
        fault: "the device has a partition table",
        given: &[Disk("disk"), Partitions("disk"), Directory("out")],
        steps: &[run(DESTROY_DISK, refused(&["MBR partition table", "--destroy-signature"]))],
        ..UNHARMED
    },
    an_encrypted_volume = Row {
        fault: "the device has an encrypted volume",
        given: &[Disk("disk"), Bytes("disk", 0, b"LUKS\xba\xbe\0\x02"), Directory("out")],
        steps: &[run(DESTROY_DISK, refused(&["LUKS", "--destroy-signature"]))],
        ..UNHARMED
    },
    a_raid_member = Row {
        fault: "the device is a member of a RAID, which shows only at its end",
        given: &[
            Disk("disk"),
            Bytes("disk", DISK - 64 * KIB, &[0xfc, 0x4e, 0x2b, 0xa9]),
            Directory("out")
        ],
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
                "tune absent --knob depth=8",
                "tune absent --knob depth=8 --yes",
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
                "tune pipe --knob depth=8",
                "tune null --knob depth=8 --yes",
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
                "tune short --knob depth=8 --yes",
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
        given: &[
            File("mine"),
            Text("pm", "set location {here}/mine\nset number 5\nset transactions 5\nrun\n")
        ],
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
];
