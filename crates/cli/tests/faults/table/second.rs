use super::*;

const REMOVED_HERE: By = under(
    "in a directory that was removed",
    &["sh", "-c", "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"", "sh"],
);

const LITTLE_DATA: By = under("under ulimit -d", &["prlimit", "--data=16000000"]);

/// The first real-time signal of the GNU C library.
const SIGRTMIN: i32 = 34;

section![
    "Signals, limits and odd devices",
    "A signal ends also what waits outside of a run. A limit, a device or a file that keeps a command from its work is named before anything \
 is done.",
    other_fatal_signals = Row {
        fault: "SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU or SIGIO during a run",
        given: &[],
        steps: &[
            Start("run {here} --size 1m --buffered --rate 0.001 --runtime 1h"),
            Until(Written(MIB)),
            Signal(libc::SIGQUIT),
            Ended(INTERRUPTED),
            Start("run {here} --size 1m --buffered --rate 0.001 --runtime 1h"),
            Until(Written(MIB)),
            Signal(libc::SIGUSR1),
            Ended(INTERRUPTED),
            Start("run {here} --size 1m --buffered --rate 0.001 --runtime 1h"),
            Until(Written(MIB)),
            Signal(libc::SIGUSR2),
            Ended(INTERRUPTED),
            Start("run {here} --size 1m --buffered --rate 0.001 --runtime 1h"),
            Until(Written(MIB)),
            Signal(libc::SIGALRM),
            Ended(INTERRUPTED),
            Start("run {here} --size 1m --buffered --rate 0.001 --runtime 1h"),
            Until(Written(MIB)),
            Signal(libc::SIGXCPU),
            Ended(INTERRUPTED),
            Start("run {here} --size 1m --buffered --rate 0.001 --runtime 1h"),
            Until(Written(MIB)),
            Signal(libc::SIGIO),
            Ended(INTERRUPTED),
        ],
        ..UNHARMED
    },
    rare_fatal_signals = Row {
        fault: "SIGVTALRM, SIGPROF, SIGPWR, SIGSTKFLT or the real-time signal by which systemd stops a container, during a run",
        given: &[],
        steps: &[
            Start("run {here} --size 1m --buffered --rate 0.001 --runtime 1h"),
            Until(Written(MIB)),
            Signal(libc::SIGVTALRM),
            Ended(INTERRUPTED),
            Start("run {here} --size 1m --buffered --rate 0.001 --runtime 1h"),
            Until(Written(MIB)),
            Signal(libc::SIGPROF),
            Ended(INTERRUPTED),
            Start("run {here} --size 1m --buffered --rate 0.001 --runtime 1h"),
            Until(Written(MIB)),
            Signal(libc::SIGPWR),
            Ended(INTERRUPTED),
            Start("run {here} --size 1m --buffered --rate 0.001 --runtime 1h"),
            Until(Written(MIB)),
            Signal(libc::SIGSTKFLT),
            Ended(INTERRUPTED),
            Start("run {here} --size 1m --buffered --rate 0.001 --runtime 1h"),
            Until(Written(MIB)),
            Signal(SIGRTMIN + 3),
            Ended(INTERRUPTED),
        ],
        ..UNHARMED
    },
    few_requests = Row {
        fault: "a run that is so short, or so slow, that it has five requests",
        given: &[File("mine")],
        steps: &[run(
            &[
                "run mine --buffered --request 4k --rate 10 --runtime 500ms --repeats 1 --max-repeats 1",
                "sweep mine --buffered --request 4k,8k --rate 10 --runtime 500ms --repeats 1 --max-repeats 1",
            ],
            well(&["too few for a rate"])
        )],
        ..UNHARMED
    },
    more_subdirectories_than_inodes = Row {
        fault: "more subdirectories are asked for than the file system has inodes",
        given: &[Ext4("fs"), Text("pm", "set location {fs}\nset subdirectories 60000\nrun\n")],
        steps: &[run(
            &["postmark pm", "metadata {fs} --files 60000 --directories 60000 --rounds 1"],
            refused(&["inodes"])
        )],
        ..UNHARMED
    },
    little_data = Row {
        fault: "the program may have little data of its own (ulimit -d)",
        given: &[File("mine")],
        steps: &[Run(
            LITTLE_DATA,
            &[
                "run mine --request 1m --depth 64",
                "run mine --buffered --request 4k --threads 1000",
                "fio --name=a --filename=mine --rw=read --bs=1m --iodepth=64 --ioengine=libaio",
                "diskspd -d1 -W0 -b1M -o64 mine",
            ],
            refused(&["memory", "ulimit -d"])
        )],
        ..UNHARMED
    },
    removed_working_directory = Row {
        fault: "the working directory was removed",
        given: &[],
        steps: &[Run(
            REMOVED_HERE,
            &["run .", "sweep . --size 1m", "fio --name=a --size=64k --rw=write"],
            no_result(&["removed|No such file"])
        )],
        ..UNHARMED
    },
    read_only_device = Row {
        fault: "a read-only device is named after --destroy-data",
        given: &[File("image"), ReadOnlyDiskOver("disk", "image")],
        steps: &[run(
            &[
                "run {disk} --op write --destroy-data {disk}",
                "sweep {disk} --op write --destroy-data {disk}",
                "sqlio -kW -frandom -s1 -BY {disk} --destroy-data {disk}",
                "diskspd -d1 -W0 -w100 {disk} --destroy-data {disk}",
                "fio --name=a --filename={disk} --rw=write --destroy-data={disk}",
            ],
            refused(&["read-only"])
        )],
        ..UNHARMED
    },
    node_without_a_driver = Row {
        fault: "no driver serves a device node",
        given: &[Shell("mknod nodrv b 240 77")],
        steps: &[run(
            &[
                "run nodrv",
                "sweep nodrv",
                "fio --name=a --filename=nodrv --rw=read",
                "sqlio -kR -s1 nodrv",
                "diskspd -d1 -W0 nodrv"
            ],
            refused(&["no driver serves"])
        )],
        ..UNHARMED
    },
    report_to_a_file_of_the_users = Row {
        fault: "`run FILE` and `show FILE` of PostMark's name a file of the user's",
        given: &[
            File("mine"),
            Text("run", "set location {here}\nset number 5\nset transactions 5\nrun mine\n"),
            Text("show", "show mine\n"),
        ],
        steps: &[run(&["postmark run", "postmark show"], refused(&["--force"]))],
        ..UNHARMED
    },
    a_file_that_loads_itself = Row {
        fault: "a file of PostMark's commands loads itself",
        given: &[Text("pm", "load pm\n")],
        steps: &[run(&["postmark pm"], refused(&["would load itself"]))],
        ..UNHARMED
    },
    a_thread_that_begins_behind_the_end = Row {
        fault: "a thread of DISKSPD's would begin behind the end of the file",
        given: &[File("mine")],
        steps: &[run(
            &["diskspd -c1M -d1 -W0 -T64K -t40 -Sh new", "diskspd -d1 -W0 -T64K -t17 mine"],
            refused(&["a thread begins at"])
        )],
        ..UNHARMED
    },
    a_job_that_waits_for_none = Row {
        fault: "a job of fio's waits for itself or for a job that is not there",
        given: &[],
        steps: &[run(
            &[
                "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --wait_for=zz",
                "fio --name=a --filename=twin:gateway-1997 --rw=read --size=1m --wait_for=a",
            ],
            refused(&["wait_for"])
        )],
        ..UNHARMED
    },
    a_region_of_a_set = Row {
        fault: "a region of a RAID 5 set, as large as the set",
        given: &[File("a"), File("b"), File("c")],
        steps: &[run(
            &[
                "run a b c --raid 5 --op write --buffered --region 2m --bytes 64k --repeats 1 --max-repeats 1 --destroy-data a --destroy-data b --destroy-data c"
            ],
            well(&[])
        )],
        leaves: &["a", "b", "c"],
    },
];
