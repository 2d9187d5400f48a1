use super::*;

section![
    "At the same time",
    "Commands that run at the same time do not take one another's files or devices.",
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
                    "stack {disk} --destroy-data {disk}",
                    "compare --a {disk} --b {disk} --op write --destroy-data {disk}",
                    "tune {disk} --op write --knob depth=8 --yes --destroy-data {disk}",
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
];
