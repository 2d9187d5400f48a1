use super::*;

const SMALL_STACK: &[&str] = &["sh", "-c", "ulimit -s 64 && exec \"$@\"", "sh"];

/// Finds the first limit, in steps of 1 MiB, that loads the program: the loader (127, 139) and the
/// runtime before `main` need some memory.
const FULL_ADDRESS_SPACE: &[&str] = &[
    "sh",
    "-c",
    "v=8192; while (ulimit -v $v; exec \"$@\") 2>err; s=$?; [ $s = 127 ] || [ $s = 139 ] || grep -q sys/pal/unix/stack_overflow err; do v=$((v+1024)); done; cat err >&2; rm err; exit $s",
    "sh",
];

/// 3 MiB more, and a small stack: too little for a thread's.
const SMALL_STACK_ALONE: &[&str] = &[
    "sh",
    "-c",
    "ulimit -s 64; v=8192; while (ulimit -v $v; exec \"$@\") 2>err; s=$?; [ $s = 127 ] || [ $s = 139 ] || grep -q sys/pal/unix/stack_overflow err; do v=$((v+1024)); done; rm err; ulimit -v $((v+3072)); exec \"$@\"",
    "sh",
];

const HIDDEN_PROCESSES: &[&str] = &[
    "unshare",
    "--mount",
    "sh",
    "-c",
    "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"",
    "sh",
];
const ONLY_PROCESSES: &[&str] = &[
    "unshare",
    "--mount",
    "sh",
    "-c",
    "mount -t proc -o subset=pid proc /proc && exec \"$@\"",
    "sh",
];

section![
    "Limits",
    "If the system gives less than was asked for, halfpower does with less or says which limit it met.",
    no_locked_memory = Row {
        fault: "no memory may be locked, as an ordinary user",
        given: &[File("mine"), Mode("mine", 0o644)],
        steps: &[Run(
            By {
                words: "as a user without locked memory",
                nobody: true,
                starter: &["prlimit", "--memlock=0"],
                ..PLAIN
            },
            &[
                "run {here}/mine --buffered --request 4k --depth 8 --bytes 64k --repeats 1 --max-repeats 1",
                "sweep {here}/mine --buffered --request 4k --depth 8,9 --bytes 64k --repeats 1 --max-repeats 1",
                "fio --name=a --filename={here}/mine --rw=randread --iodepth=8 --ioengine=io_uring",
                "sqlio -kR -frandom --runtime 20ms -b64 -BY -o8 {here}/mine",
                "diskspd -d1 -W0 -o8 -b64K {here}/mine",
                "iozone -i 1 -w -s 64k -r 4k -H 4 -f {here}/mine",
            ],
            well(&["no more memory may be locked|io_uring is not available here"])
        )],
        ..UNHARMED
    },
    a_file_size_limit = Row {
        fault: "the limit on file sizes (ulimit -f) is smaller than the test file",
        given: &[POSTMARK],
        steps: &[Run(
            under("under prlimit --fsize=64k", &["prlimit", "--fsize=65536"]),
            &[
                "run {here} --size 1m",
                "fio --name=a --directory={here} --size=1m --rw=write",
                "iozone -i 0 -r 64k -s 1m -f {here}/iozone.tmp",
                "sqlio -kW -s1 --size 1m {here}",
                "diskspd -d1 -w100 -c1M {here}",
                "metadata {here} --files 2 --file-bytes 1m --rounds 1",
            ],
            no_result(&["File too large"])
        )],
        ..UNHARMED
    },
    few_open_files = Row {
        fault: "few files may be open",
        given: &[File("mine")],
        steps: &[Run(
            under("under prlimit --nofile=12", &["prlimit", "--nofile=12"]),
            &["fio --name=a --directory={here} --size=1m --nrfiles=64 --rw=write",],
            no_result(&["Too many open files"])
        )],
        ..UNHARMED
    },
    little_memory = Row {
        fault: "there is not enough memory for the requests",
        given: &[Disk("disk")],
        steps: &[Run(
            under("under prlimit --as=400m", &["prlimit", "--as=419430400"]),
            &[
                "run {disk} --request 8m --depth 1024 --runtime 10ms --repeats 1 --max-repeats 1",
                "run {disk} --op write --request 8m --depth 1024 --destroy-data {disk}",
                "sweep {disk} --op write --request 8m --depth 1,1024 --destroy-data {disk}",
                "compare --a {disk} --b {disk} --op write --request 8m --depth 1024 --destroy-data {disk}",
                "tune {disk} --op write --request 8m --depth 1024 --knob depth=512 --yes --destroy-data {disk}",
                "fio --name=a --filename={disk} --rw=write --bs=8m --iodepth=1024 --ioengine=libaio --direct=1 --destroy-data={disk}",
                "sqlio -kW -frandom -s1 -b4096 -o256 -t4 -BN {disk} --destroy-data {disk}",
                "diskspd -d1 -W0 -w100 -b8M -o1024 -Su {disk} --destroy-data {disk}",
                "run {here} --request 8m --depth 1024",
            ],
            refused(&["memory"])
        )],
        ..UNHARMED
    },
    a_group_of_little_memory = Row {
        fault: "the control group has not enough memory for the requests",
        given: &[Disk("disk"), Group("group", Limit::Memory(192 * MIB))],
        steps: &[Run(
            IN_GROUP,
            &[
                "run {disk} --op write --request 8m --depth 64 --destroy-data {disk}",
                "sweep {disk} --op write --request 8m --depth 64 --destroy-data {disk}",
                "fio --name=a --filename={disk} --rw=write --bs=8m --iodepth=64 --ioengine=libaio --direct=1 --destroy-data={disk}",
                "diskspd -d1 -W0 -w100 -b8M -o64 -Su {disk} --destroy-data {disk}",
                "iozone -t 4 -i 0 -s 256m -r 256m -f {here}",
            ],
            refused(&["memory"])
        )],
        ..UNHARMED
    },
    a_group_of_few_processes = Row {
        fault: "the control group may have few processes and threads",
        given: &[
            File("mine"),
            Text(
                "pm",
                "set location {here}\nset threads 64\nset number 200\nset transactions 200\nrun\nquit\n"
            ),
            Group("group", Limit::Processes(4)),
        ],
        steps: &[
            Run(
                IN_GROUP,
                &[
                    "run mine --buffered --request 4k --threads 64 --bytes 1m --repeats 1 --max-repeats 1",
                    "fio --name=a --filename=mine --numjobs=64 --rw=read",
                    "diskspd -d1 -t64 -W0 mine",
                    "metadata {here} --files 200 --threads 64 --rounds 1",
                    "postmark pm",
                ],
                no_result(&["more threads"])
            ),
            Run(
                IN_GROUP,
                &["run mine --buffered --bytes 64k --repeats 1 --max-repeats 1"],
                well(&[])
            ),
        ],
        ..UNHARMED
    },
    a_group_of_no_thread = Row {
        fault: "the control group may have only one thread",
        given: &[File("mine"), Group("group", Limit::Processes(1))],
        steps: &[
            Run(
                IN_GROUP,
                &[
                    "run mine --buffered --bytes 64k --repeats 1 --max-repeats 1",
                    "fio --name=a --filename=mine --rw=read",
                    "study mine --quick --budget 5s --only memory --output out",
                ],
                fails(&["more threads"])
            ),
            Run(IN_GROUP, &["metadata {here} --files 20 --rounds 1", "twin list"], well(&[])),
        ],
        ..UNHARMED
    },
    a_group_of_little_processor = Row {
        fault: "the control group has a fifth of a processor: the result says so",
        given: &[File("mine"), Group("group", Limit::Processor(20))],
        steps: &[Run(
            IN_GROUP,
            &["run mine --buffered --bytes 64k --repeats 1 --max-repeats 1 --json"],
            well(&["\"cpu_quota\": \"0.20\""])
        )],
        ..UNHARMED
    },
    few_processes = Row {
        fault: "few threads may run, as an ordinary user",
        given: &[File("mine"), Mode("mine", 0o644)],
        steps: &[Run(
            By {
                words: "as a user with one process",
                nobody: true,
                starter: &["prlimit", "--nproc=2"],
                ..PLAIN
            },
            &[
                "run {here}/mine --buffered --request 4k --threads 64 --bytes 1m --repeats 1 --max-repeats 1",
                "fio --name=a --filename={here}/mine --numjobs=64 --rw=read",
                "diskspd -d1 -t64 -W0 {here}/mine",
            ],
            no_result(&["threads|Resource temporarily unavailable"])
        )],
        ..UNHARMED
    },
    no_permission_to_make = Row {
        fault: "no permission to make files",
        given: &[Text("pm", "set location {here}\nset number 5\nset transactions 5\nrun\n")],
        steps: &[Run(
            NOBODY,
            &[
                "run {here}",
                "study {here} --quick --output /tmp",
                "stack {here}",
                "compare --a {here} --b {here}",
                "tune {here} --knob depth=2 --yes",
                "metadata {here}",
                "fio --name=a --directory={here} --size=64k --rw=write",
                "iozone -i 0 -s 64 -f {here}/iozone.tmp",
                "sqlio -kW -s1 --size 64k {here}",
                "diskspd -d1 -c64K {here}",
                "postmark {here}/pm",
            ],
            no_result(&["ermission"])
        )],
        ..UNHARMED
    },
    no_permission_to_read = Row {
        fault: "no permission to read, or to look",
        given: &[File("mine"), Mode("mine", 0o600), Directory("hidden"), Mode("hidden", 0o700)],
        steps: &[Run(
            NOBODY,
            &[
                "run {here}/mine",
                "sweep {here}/hidden/file",
                "stack {here}/mine",
                "compare --a {here}/mine --b {here}/mine",
                "tune {here}/mine --knob depth=2 --yes",
                "fio --name=a --filename={here}/mine --rw=read",
                "iozone -i 1 -r 64k -s 1m -f {here}/mine",
                "sqlio -kR -s1 {here}/mine",
                "diskspd -d1 -W0 {here}/mine",
                "metadata {here}/hidden",
                "report {here}/mine",
                "verify {here}/mine",
            ],
            no_result(&["ermission"])
        )],
        ..UNHARMED
    },
    no_permission_to_write = Row {
        fault: "no permission to write what is named after --destroy-data",
        given: &[File("mine"), Mode("mine", 0o644)],
        steps: &[Run(
            NOBODY,
            &[
                "run {here}/mine --op write --destroy-data {here}/mine",
                "stack {here}/mine --destroy-data {here}/mine",
                "compare --a {here}/mine --b {here}/mine --op write --destroy-data {here}/mine",
                "tune {here}/mine --op write --knob depth=2 --yes --destroy-data {here}/mine",
                "fio --name=a --filename={here}/mine --rw=write --destroy-data={here}/mine",
                "sqlio -kW -frandom -s1 -BY {here}/mine --destroy-data {here}/mine",
                "diskspd -d1 -W0 -w100 {here}/mine --destroy-data {here}/mine",
            ],
            no_result(&["ermission"])
        )],
        ..UNHARMED
    },
    a_small_stack = Row {
        fault: "the stack may have 64 KiB (ulimit -s)",
        given: &[File("mine"), POSTMARK, Directory("d")],
        steps: &[
            Run(under("under ulimit -s 64", SMALL_STACK), READ_MINE, well(&[])),
            Run(
                under("under ulimit -s 64", SMALL_STACK),
                &[
                    "--help",
                    "twin list",
                    "run twin:gateway-1997 --runtime 10ms",
                    "compare --a twin:gateway-1997 --b twin:gateway-1997,disks=2 --runtime 10ms",
                    "tune twin:gateway-1997 --knob depth=8",
                    "stack twin:gateway-1997",
                    "metadata d --files 20 --rounds 1",
                    "postmark pm",
                ],
                well(&[])
            ),
            Run(
                under("under ulimit -s 64", SMALL_STACK),
                &["run mine --op wirte", "nonsense"],
                refused(&[])
            ),
        ],
        ..UNHARMED
    },
    a_small_stack_and_no_memory = Row {
        fault: "the stack may have 64 KiB, and no memory is left for another",
        given: &[],
        steps: &[Run(
            under("under ulimit -s 64 and ulimit -v", SMALL_STACK_ALONE),
            &["twin list", "run mine"],
            refused(&["ulimit -s", "raise the limit"])
        )],
        ..UNHARMED
    },
    hardly_any_memory = Row {
        fault: "there is hardly more address space than the program itself takes",
        given: &[File("mine"), Directory("d")],
        steps: &[Run(
            under("with as much address space as loading the program takes", FULL_ADDRESS_SPACE),
            &[
                "twin list",
                "run mine",
                "fio --name=a --filename=mine --rw=read",
                "metadata d --files 20 --rounds 1"
            ],
            refused(&["memory", "ulimit -v"])
        )],
        ..UNHARMED
    },
    no_proc = Row {
        fault: "/proc is not mounted",
        given: &[File("mine"), POSTMARK, Directory("d")],
        steps: &[
            Run(
                under("without /proc", NO_PROC),
                &[
                    "run mine",
                    "run d --size 1m",
                    "run mine --op write --destroy-data mine --destroy-signature",
                    "sweep mine",
                    "study mine --quick --budget 5s --output out",
                    "stack mine",
                    "compare --a mine --b mine",
                    "tune mine --knob depth=8 --yes",
                    "metadata d --files 20 --rounds 1",
                    "fio --name=a --filename=mine --rw=read",
                    "fio --name=a --directory=d --size=1m --rw=write",
                    "iozone -i 0 -r 64k -s 256k -f d/x",
                    "sqlio -kR -s1 mine",
                    "diskspd -d1 -W0 mine",
                    "postmark pm",
                ],
                refused(&["/proc: it is not mounted", "mount -t proc proc /proc"])
            ),
            Run(
                under("without /proc", NO_PROC),
                &[
                    "twin list",
                    "run twin:gateway-1997 --runtime 10ms",
                    "compare --a twin:gateway-1997 --b twin:gateway-1997,disks=2 --runtime 10ms",
                    "tune twin:gateway-1997 --knob depth=8",
                    "stack twin:gateway-1997",
                ],
                well(&[])
            ),
        ],
        ..UNHARMED
    },
    no_sys = Row {
        fault: "/sys is not mounted: what is only read is measured",
        given: &[File("mine")],
        steps: &[Run(under("without /sys", NO_SYS), READ_MINE, well(&[]))],
        ..UNHARMED
    },
    no_dev = Row {
        fault: "/dev has no nodes",
        given: &[],
        steps: &[Run(
            under("with an empty /dev", NO_DEV),
            &[
                "run /dev/loop0",
                "stack /dev/loop0",
                "fio --name=a --filename=/dev/loop0 --rw=read",
                "diskspd -d1 /dev/loop0"
            ],
            refused(&["/dev/loop0"])
        )],
        ..UNHARMED
    },
    little_of_proc = Row {
        fault: "/proc shows only one's own processes (hidepid=2), or only processes (subset=pid)",
        given: &[File("mine"), Mode("mine", 0o666)],
        steps: &[
            Run(under("with hidepid=2", HIDDEN_PROCESSES), READ_MINE, well(&[])),
            Run(
                By { nobody: true, ..under("with hidepid=2", HIDDEN_PROCESSES) },
                &["run {here}/mine --buffered --bytes 64k --repeats 1 --max-repeats 1"],
                well(&[])
            ),
            Run(under("with subset=pid", ONLY_PROCESSES), READ_MINE, well(&[])),
        ],
        ..UNHARMED
    },
];
