use super::*;

/// Lines that may write, because only a neighbour is in use.
const DESTROY_UNUSED: &[&str] = &[
    "run {disk} --op write --bytes 64k --repeats 1 --max-repeats 1 --destroy-data {disk}",
    "fio --name=a --filename={disk} --rw=write --size=64k --destroy-data={disk}",
    "iozone -i 0 -r 64k -s 256k -f {disk} --destroy-data {disk}",
    "diskspd -d1 -W0 -w100 -b64K {disk} --destroy-data {disk}",
];

section![
    "Data in use under another name",
    "Bytes that a mount, a loop device, swap space or another program uses are not written, whatever name they are given: of a layer of an overlay, \
 a hard link, another mount. What the kernel does not show has to be confirmed with --destroy-signature.",
    an_upper_layer = Row {
        fault: "the file of an overlay's upper directory that a mounted loop device reaches through the overlay",
        given: &[
            Directory("l"),
            Directory("u"),
            Overlay("m", "l", "u"),
            File("m/image"),
            DiskOver("at", "m/image", 0),
            Made("at", "mkfs.ext4 -q -O ^has_journal"),
            Mounted("mnt", "at"),
            Link("disk", "u/image"),
            Directory("out"),
        ],
        steps: &[run(DESTROY_DISK_ALL, refused(&["loop device"]))],
        ..UNHARMED
    },
    an_upper_layer_on_a_disk = Row {
        fault: "the same on ext4, which shows where the file is on its device",
        given: &[
            Ext4("fs"),
            Directory("fs/l"),
            Directory("fs/u"),
            Overlay("m", "fs/l", "fs/u"),
            File("m/image"),
            DiskOver("at", "m/image", 0),
            Made("at", "mkfs.ext4 -q -O ^has_journal"),
            Mounted("mnt", "at"),
            Link("disk", "fs/u/image"),
            Directory("out"),
        ],
        steps: &[run(DESTROY_DISK_ALL, refused(&["loop device"]))],
        ..UNHARMED
    },
    an_upper_layer_as_a_user = Row {
        fault: "the same, as a user who may not ask what loop devices are on",
        given: &[
            Directory("l"),
            Directory("u"),
            Overlay("m", "l", "u"),
            File("m/image"),
            Mode("m/image", 0o666),
            DiskOver("at", "m/image", 0),
        ],
        steps: &[Run(
            NOBODY,
            &[
                "run {here}/u/image --op write --destroy-data {here}/u/image --destroy-signature",
                "fio --name=a --filename={here}/u/image --rw=write --destroy-data={here}/u/image --destroy-signature",
            ],
            refused(&["loop device"])
        )],
        ..UNHARMED
    },
    through_the_overlay = Row {
        fault: "a file of an overlay, and a mounted loop device is on the one of its upper directory",
        given: &[
            Directory("l"),
            Directory("u"),
            File("u/image"),
            Overlay("m", "l", "u"),
            DiskOver("at", "u/image", 0),
            Made("at", "mkfs.ext4 -q -O ^has_journal"),
            Mounted("mnt", "at"),
            Link("disk", "m/image"),
            Directory("out"),
        ],
        steps: &[run(DESTROY_DISK_ALL, refused(&["loop device"]))],
        ..UNHARMED
    },
    a_lower_layer = Row {
        fault: "the file of an overlay's lower directory, which a loop device reads through the overlay",
        given: &[
            Directory("l"),
            Directory("u"),
            File("l/image"),
            Overlay("m", "l", "u"),
            ReadOnlyDiskOver("at", "m/image"),
            Link("disk", "l/image"),
            Directory("out"),
        ],
        steps: &[run(DESTROY_DISK_ALL, refused(&["loop device"]))],
        ..UNHARMED
    },
    a_layer_of_a_layer = Row {
        fault: "the file of the lowest of two overlays, which a loop device reads through the upper one",
        given: &[
            Directory("l"),
            Directory("u"),
            Directory("v"),
            File("l/image"),
            Overlay("m", "l", "u"),
            Overlay("n", "m", "v"),
            ReadOnlyDiskOver("at", "n/image"),
            Link("disk", "l/image"),
            Directory("out"),
        ],
        steps: &[run(DESTROY_DISK_ALL, refused(&["loop device"]))],
        ..UNHARMED
    },
    a_layer_in_another_namespace = Row {
        fault: "the file of the upper directory of an overlay that another mount namespace has, as a container does, with a loop device on it",
        given: &[
            Directory("l"),
            Directory("u"),
            File("u/image"),
            DiskElsewhere("l", "u", "image"),
            Link("disk", "u/image"),
            Directory("out"),
        ],
        steps: &[run(DESTROY_DISK_ALL, refused(&["loop device"]))],
        ..UNHARMED
    },
    a_loop_device_on_a_layer = Row {
        fault: "a loop device on the upper directory's file, and a mounted one is on the overlay's",
        given: &[
            Directory("l"),
            Directory("u"),
            Overlay("m", "l", "u"),
            File("m/image"),
            DiskOver("at", "m/image", 0),
            Made("at", "mkfs.ext4 -q -O ^has_journal"),
            Mounted("mnt", "at"),
            DiskOver("disk", "u/image", 0),
            Directory("out"),
        ],
        steps: &[run(DESTROY_DISK_ALL, refused(&["in use|is mounted on"]))],
        ..UNHARMED
    },
    another_file_of_the_layer = Row {
        fault: "another file of the same layer of an overlay: nothing uses it, and it is written",
        given: &[
            Ext4("fs"),
            Directory("fs/l"),
            Directory("fs/u"),
            Overlay("m", "fs/l", "fs/u"),
            File("m/image"),
            DiskOver("at", "m/image", 0),
            File("m/other"),
            Link("disk", "fs/u/other"),
        ],
        steps: &[run(DESTROY_UNUSED, well(&[]))],
        leaves: &["fs/u/other", "m/other"],
    },
    a_reflink = Row {
        fault: "a copy that shares its extents with a file that a mounted loop device is on: it is written, and the other keeps its data",
        given: &[
            Btrfs("fs", "second"),
            File("fs/image"),
            Reflink("fs/copy", "fs/image"),
            DiskOver("at", "fs/image", 0),
            Link("disk", "fs/copy"),
        ],
        steps: &[run(DESTROY_UNUSED, well(&[]))],
        leaves: &["fs/copy"],
    },
    a_reflink_in_an_overlay = Row {
        fault: "the same, and the loop device is on the file of an overlay",
        given: &[
            Btrfs("fs", "second"),
            Directory("fs/l"),
            Directory("fs/u"),
            File("fs/u/image"),
            Reflink("fs/u/copy", "fs/u/image"),
            Overlay("m", "fs/l", "fs/u"),
            DiskOver("at", "m/image", 0),
            Link("disk", "fs/u/copy"),
        ],
        steps: &[run(DESTROY_UNUSED, well(&[]))],
        leaves: &["fs/u/copy", "m/copy"],
    },
    a_layer_of_btrfs = Row {
        fault: "the file of an overlay's upper directory on btrfs, with extents that a copy shares",
        given: &[
            Btrfs("fs", "second"),
            Directory("fs/l"),
            Directory("fs/u"),
            File("fs/u/image"),
            Reflink("fs/u/copy", "fs/u/image"),
            Overlay("m", "fs/l", "fs/u"),
            DiskOver("at", "m/image", 0),
            Link("disk", "fs/u/image"),
            Directory("out"),
        ],
        steps: &[run(DESTROY_DISK_ALL, refused(&["loop device"]))],
        ..UNHARMED
    },
    a_second_member_of_btrfs = Row {
        fault: "the second device of a mounted btrfs, which mounts do not name",
        given: &[Btrfs("fs", "disk"), Directory("out")],
        steps: &[run(DESTROY_DISK_ALL, refused(&["is mounted on"]))],
        ..UNHARMED
    },
    a_file_mounted_without_a_loop_device = Row {
        fault: "an image of EROFS that is mounted without a loop device",
        given: &[
            Ext4("fs"),
            MountedFile("mnt", "fs/image"),
            Link("disk", "fs/image"),
            Directory("out")
        ],
        steps: &[run(DESTROY_DISK_ALL, refused(&["is mounted on"]))],
        ..UNHARMED
    },
    a_loop_device_over_a_mounted_file = Row {
        fault: "a loop device on the file that is mounted without one",
        given: &[
            Ext4("fs"),
            MountedFile("mnt", "fs/image"),
            DiskOver("disk", "fs/image", 0),
            Directory("out")
        ],
        steps: &[run(DESTROY_DISK_ALL, refused(&["is mounted on"]))],
        ..UNHARMED
    },
    swap_by_a_hard_link = Row {
        fault: "a hard link to a swap file in use",
        given: &[
            Ext4("fs"),
            File("fs/swap"),
            Swap("fs/swap"),
            HardLink("fs/link", "fs/swap"),
            Link("disk", "fs/link"),
            Directory("out")
        ],
        steps: &[run(DESTROY_DISK_ALL, refused(&["swap space"]))],
        ..UNHARMED
    },
    swap_through_an_overlay = Row {
        fault: "a swap file in use, named through an overlay and through a bind mount",
        given: &[
            Ext4("fs"),
            Directory("fs/l"),
            Directory("fs/u"),
            File("fs/u/swap"),
            Swap("fs/u/swap"),
            Overlay("m", "fs/l", "fs/u"),
            Bound("b", "fs/u"),
        ],
        steps: &[run(
            &[
                "run m/swap --op write --destroy-data m/swap --destroy-signature",
                "run b/swap --op write --destroy-data b/swap --destroy-signature",
                "fio --name=a --filename=m/swap --rw=write --destroy-data=m/swap --destroy-signature",
            ],
            refused(&["swap space"])
        )],
        ..UNHARMED
    },
    swap_in_memory = Row {
        fault: "swap space in use on a compressed disk in memory",
        given: &[Zram("disk"), Swap("disk"), Directory("out")],
        steps: &[run(DESTROY_DISK_ALL, refused(&["swap space"]))],
        ..UNHARMED
    },
    other_names = Row {
        fault: "a file under a loop device, by names of /proc and /dev/fd and through a bind mount",
        given: &[Disk("at"), Directory("dir"), HardLink("dir/image", "at.img"), Bound("b", "dir")],
        steps: &[
            run(
                &[
                    "run /proc/self/root{at.img} --op write --destroy-data /proc/self/root{at.img} --destroy-signature",
                    "run /proc/self/cwd/at.img --op write --destroy-data /proc/self/cwd/at.img --destroy-signature",
                    "run b/image --op write --destroy-data b/image --destroy-signature",
                ],
                refused(&["loop device"])
            ),
            Run(
                under("with the file open as 3", &["sh", "-c", "exec \"$@\" 3<\"$0\"", "{at.img}"]),
                &[
                    "run /dev/fd/3 --op write --destroy-data /dev/fd/3 --destroy-signature",
                    "fio --name=a --filename=/proc/self/fd/3 --rw=write --destroy-data=/proc/self/fd/3 --destroy-signature",
                ],
                refused(&["loop device"])
            ),
        ],
        ..UNHARMED
    },
    a_removed_name = Row {
        fault: "the name by which a loop device was set up is removed, and the file has another in the overlay's upper directory",
        given: &[
            Directory("l"),
            Directory("u"),
            Overlay("m", "l", "u"),
            File("m/image"),
            DiskOver("at", "m/image", 0),
            HardLink("m/other", "m/image"),
            Removed("m/image"),
            Link("disk", "u/other"),
            Directory("out"),
        ],
        steps: &[run(DESTROY_DISK_ALL, refused(&["in use"]))],
        ..UNHARMED
    },
    a_removed_name_that_is_read = Row {
        fault: "the same with a read-only loop device, of which nothing shows that it is on the file: more confirmation is asked for",
        given: &[
            Directory("l"),
            Directory("u"),
            Overlay("m", "l", "u"),
            File("m/image"),
            // No other test's file has this size, so none of them could be what the loop device is
            // on.
            Length("m/image", MIB + 3584),
            HardLink("m/other", "m/image"),
            ReadOnlyDiskOver("at", "m/image"),
            Removed("m/image"),
            Link("disk", "u/other"),
            Directory("out"),
        ],
        steps: &[run(DESTROY_DISK, refused(&["loop device", "--destroy-signature"]))],
        ..UNHARMED
    },
    open_for_writing = Row {
        fault: "another process has the file open for writing, as that of a virtual machine does",
        given: &[File("disk"), HeldForWriting("disk"), Directory("out")],
        steps: &[run(DESTROY_DISK_ALL, refused(&["process", "open for writing"]))],
        ..UNHARMED
    },
    a_layer_open_for_writing = Row {
        fault: "another process has the upper directory's file open for writing, or the overlay's",
        given: &[
            Directory("l"),
            Directory("u"),
            Overlay("m", "l", "u"),
            File("m/image"),
            File("m/other"),
            HeldForWriting("m/image"),
            HeldForWriting("u/other"),
        ],
        steps: &[run(
            &[
                "run u/image --op write --destroy-data u/image --destroy-signature",
                "run m/other --op write --destroy-data m/other --destroy-signature",
                "diskspd -d1 -W0 -w100 -b64K m/other --destroy-data m/other --destroy-signature",
            ],
            refused(&["process", "open for writing"])
        )],
        ..UNHARMED
    },
    a_device_open_for_writing = Row {
        fault: "another process has the device open for writing, and does not share it exclusively",
        given: &[Disk("disk"), HeldForWriting("disk"), Directory("out")],
        steps: &[run(DESTROY_DISK_ALL, refused(&["process", "open for writing"]))],
        ..UNHARMED
    },
    served_by_fuse = Row {
        fault: "a process that serves a FUSE file system reads the file",
        given: &[File("disk"), HeldByServer("disk"), Faulty("fs", &[]), Directory("out")],
        steps: &[run(DESTROY_DISK_ALL, refused(&["process", "serves a file system from it"]))],
        ..UNHARMED
    },
    an_output_in_a_layer = Row {
        fault: "the output is the measured file, or the one under the measured device, by the name of another layer, even with --force",
        given: &[
            Directory("l"),
            Directory("u"),
            Overlay("m", "l", "u"),
            File("m/image"),
            File("m/mine"),
            DiskOver("disk", "m/image", 0),
        ],
        steps: &[run(
            &[
                "fio --force --name=a --filename=m/mine --rw=read --json=u/mine",
                "iozone --force -i 1 -r 64k -s 1m -f m/mine --json u/mine",
                "iozone --force -i 1 -r 64k -s 1m -f m/mine -b u/mine",
                "diskspd --force -d1 -W0 -b64K --json m/mine u/mine",
                "sqlio --force -kR -s1 -b64 --json u/mine m/mine",
                "tune --force m/mine --knob depth=8 --output u/mine",
                "compare --force --a u/mine --b u/mine --html m/mine",
                "fio --force --name=a --filename={disk} --rw=read --json=u/image",
                "diskspd --force -d1 -W0 -b64K --json u/image {disk}",
            ],
            refused(&["it is measured"])
        )],
        ..UNHARMED
    },
    no_list_of_devices = Row {
        fault: "/sys is not mounted, so that loop devices cannot be found: more confirmation is asked for",
        given: &[File("mine")],
        steps: &[Run(
            under("without /sys", NO_SYS),
            &[
                "run mine --op write --destroy-data mine",
                "fio --name=a --filename=mine --rw=write --destroy-data=mine",
                "diskspd -d1 -W0 -w100 mine --destroy-data mine",
            ],
            refused(&["/sys", "--destroy-signature"])
        )],
        ..UNHARMED
    },
    a_writer_that_ends = Row {
        fault: "a process still writes the file when the command begins, and ends soon: the command waits for it",
        given: &[File("disk")],
        steps: &[Run(
            under(
                "while another process still writes it",
                &["sh", "-c", "sleep 0.3 3<>\"$0\" & exec \"$@\"", "{disk}"]
            ),
            &[
                "run {disk} --op write --bytes 64k --repeats 1 --max-repeats 1 --destroy-data {disk}"
            ],
            well(&[])
        )],
        leaves: &["disk"],
    },
];
