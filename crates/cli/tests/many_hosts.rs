//! Many clients under mpirun: rates, the verdict, and what can go wrong.

mod common;
#[cfg(feature = "mpi")]
#[path = "many_hosts/namespaces.rs"]
mod namespaces;
#[cfg(feature = "mpi")]
#[path = "many_hosts/together.rs"]
mod together;

use common::{HALFPOWER, command, finish};

fn as_rank(rank: &str, words: &str) -> common::Ended {
    let mut command = command(HALFPOWER, words.split_whitespace());
    command.env("OMPI_COMM_WORLD_SIZE", "4").env("OMPI_COMM_WORLD_RANK", rank);
    finish(command)
}

#[test]
fn only_rank_0_speaks_for_the_command_line() {
    for words in ["run . --bogus", "tune .", "run . --op move"] {
        let (first, other) = (as_rank("0", words), as_rank("1", words));
        assert_eq!((first.code, other.code), (Some(2), Some(2)), "{words}");
        assert!(!first.stderr.is_empty(), "{words}");
        assert_eq!((other.stdout.as_str(), other.stderr.as_str()), ("", ""), "{words}");
    }
    let tune = as_rank("0", "tune .");
    tune.refused(&["mpirun started 4 copies", "only halfpower run, sweep, study, metadata, ior"]);
}

#[test]
fn options_for_many_clients_need_several() {
    for option in ["--clients 2", "--shared-file"] {
        let ended = common::halfpower(&format!("run . {option}"));
        ended.refused(&[option.split(' ').next().unwrap(), "mpirun -np 4"]);
    }
    common::halfpower("run . --clients none").refused(&["'none'", "1,2,4 or powers"]);
    common::halfpower("tune . --clients 2").refused(&["--clients"]);
}

#[cfg(not(feature = "mpi"))]
#[test]
fn without_mpi_several_processes_are_refused() {
    as_rank("0", "run .").refused(&["mpirun started 4 copies", "without MPI", "--features mpi"]);
    let other = as_rank("3", "run .");
    assert_eq!((other.code, other.stderr.as_str()), (Some(2), ""));
}

#[cfg(feature = "mpi")]
mod over_mpi {
    use crate::common::places::{Loop, Mount, Throttle, memory_directory};
    use crate::common::{
        Ended, HALFPOWER, alone, command, ended, finish, number, points, test_files,
    };
    use crate::{common, or_skip};
    use serde_json::Value;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    pub const MPIRUN: [&str; 2] = ["--oversubscribe", "--allow-run-as-root"];

    pub fn mpi_is_here() -> Result<(), String> {
        match Command::new("mpirun").arg("--version").output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(format!("mpirun --version: {}", output.status)),
            Err(error) => Err(format!("mpirun: {error}")),
        }
    }

    pub fn launch(directory: &Path, blocks: &[(usize, &[&str], &str)], words: &str) -> Command {
        let mut all: Vec<String> = MPIRUN.map(String::from).to_vec();
        for (place, (processes, before, program)) in blocks.iter().enumerate() {
            if place > 0 {
                all.push(":".into());
            }
            all.extend(["-np".into(), processes.to_string()]);
            all.extend(before.iter().map(|&word| word.to_owned()));
            all.push((*program).into());
            all.extend(words.split_whitespace().map(String::from));
        }
        let mut command = command("mpirun", all);
        command.current_dir(directory);
        command
    }

    pub fn clients(directory: &Path, processes: usize, words: &str) -> Ended {
        finish(launch(directory, &[(processes, &[], HALFPOWER)], words))
    }

    pub fn document(ended: &Ended) -> Value {
        let document = ended.good_json();
        let schema: Value = serde_json::from_str(&results::schema()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}", errors.join("\n"));
        document
    }

    fn sentence(document: &Value) -> String {
        let result: results::Results = serde_json::from_value(document.clone()).unwrap();
        result.scaling[0].sentence()
    }

    pub fn warnings(document: &Value) -> String {
        let all = points(document).iter().flat_map(|point| point["warnings"].as_array().unwrap());
        all.map(|text| text.as_str().unwrap().to_owned() + "\n").collect()
    }

    /// A paced load that any computer carries.
    const PACED: &str = "--size 2m --buffered --request 4k --rate 300 --runtime 300ms --repeats 2 --max-repeats 2 --progress none --json";

    #[test]
    fn clients_that_do_not_hinder_one_another_are_their_own_limit() {
        or_skip!(mpi_is_here());
        let _alone = alone();
        let directory = memory_directory();
        let ended = clients(directory.path(), 3, &format!("run . {PACED} --clients powers"));
        let document = document(&ended);
        assert_eq!(document["schema"], "halfpower.results/1");
        assert_eq!(document["clients"]["same_directory"], true);
        assert_eq!(document["clients"]["ranks"].as_array().unwrap().len(), 3);
        assert_eq!(document["target"]["size_bytes"], 2 << 20, "of each client");
        let numbers: Vec<u64> = points(&document)
            .iter()
            .map(|point| point["workload"]["clients"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, [1, 2, 3]);
        for point in points(&document) {
            let clients = number(point, "/workload/clients");
            let iops = number(point, "/iops");
            assert!((iops / (clients * 300.0) - 1.0).abs() < 0.1, "{iops} with {clients} clients");
            assert!(number(point, "/clients/fairness") > 0.95);
            assert_eq!(point["clients"]["each"].as_array().unwrap().len() as f64, clients);
        }
        let scaling = &document["scaling"][0];
        assert_eq!(
            (&scaling["limit"], &scaling["half_power_clients"]),
            (&"client".into(), &2.into())
        );
        assert!(test_files(directory.path()).is_empty());
        assert!(ended.stderr.is_empty(), "only rank 0 prints: {}", ended.stderr);
    }

    #[test]
    fn a_shared_limit_is_found_with_its_knee() {
        or_skip!(mpi_is_here());
        let _alone = alone();
        let mount = or_skip!(Mount::on_loop("ext4", 64 << 20));
        let _throttle = or_skip!(Throttle::set(mount.device(), &[("read_bps", 25_000_000)]));
        // 10 MB/s each: 49152 bytes, 203 times a second.
        let words = format!(
            "run {} --size 4m --request 48k --rate 203 --runtime 1s --repeats 1 --max-repeats 1 --clients 1,2,3,4 --progress none --json",
            mount.name()
        );
        let document = document(&clients(Path::new("/"), 4, &words));
        let rates: Vec<f64> = points(&document)
            .iter()
            .map(|point| number(point, "/throughput_bytes_per_s") / 1e6)
            .collect();
        for (rate, truth) in rates.iter().zip([10.0, 20.0, 25.0, 25.0]) {
            assert!((rate / truth - 1.0).abs() < 0.1, "{rates:?}");
        }
        let scaling = &document["scaling"][0];
        assert_eq!(scaling["limit"], "server", "{scaling:#}");
        assert_eq!(
            (scaling["half_power_clients"].as_u64(), scaling["knee_clients"].as_u64()),
            (Some(2), Some(3)),
            "{scaling:#}"
        );
        let sentence = sentence(&document);
        for words in ["2 clients reach half", "more than 3 gain nothing", "the server is the limit"]
        {
            assert!(sentence.contains(words), "{sentence}");
        }
    }

    pub struct SlowGroup(PathBuf);

    impl SlowGroup {
        pub fn path(&self) -> &Path {
            &self.0
        }

        pub fn make(device: &Loop, read_bps: u64) -> Result<SlowGroup, String> {
            static GROUPS: AtomicU32 = AtomicU32::new(0);
            let number = GROUPS.fetch_add(1, Ordering::Relaxed);
            let group = SlowGroup(PathBuf::from(format!(
                "/sys/fs/cgroup/blkio/halfpower-test-{}-{number}",
                std::process::id()
            )));
            let say = |error: std::io::Error| format!("{}: {error}", group.0.display());
            fs::create_dir(&group.0).map_err(say)?;
            let limit = format!("{} {read_bps}", device.number()?);
            fs::write(group.0.join("blkio.throttle.read_bps_device"), limit).map_err(say)?;
            Ok(group)
        }
    }

    impl Drop for SlowGroup {
        fn drop(&mut self) {
            // A process leaves its group when its parent has asked for its end.
            let until = Instant::now() + Duration::from_secs(5);
            while fs::remove_dir(&self.0).is_err() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    #[test]
    fn a_client_at_half_speed_is_named() {
        or_skip!(mpi_is_here());
        let _alone = alone();
        let mount = or_skip!(Mount::on_loop("ext4", 64 << 20));
        let group = or_skip!(SlowGroup::make(mount.device(), 2_500_000));
        let words = format!(
            "run {} --size 4m --request 48k --rate 102 --runtime 4s --repeats 1 --max-repeats 1 --clients 1,4 --progress none --json",
            mount.name()
        );
        let enter = format!("echo $$ > {}/tasks && exec \"$0\" \"$@\"", group.0.display());
        let slow = ["sh", "-c", &enter];
        let blocks: [(usize, &[&str], &str); 3] =
            [(2, &[], HALFPOWER), (1, &slow, HALFPOWER), (1, &[], HALFPOWER)];
        let document = document(&finish(launch(Path::new("/"), &blocks, &words)));
        let all = &points(&document)[1];
        let share = number(all, "/clients/each/2/of_median");
        assert!((share - 0.5).abs() < 0.1, "{:#}", all["clients"]["each"]);
        assert!(warnings(&document).contains("rank 2 ("), "{}", warnings(&document));
        let scaling = &document["scaling"][0];
        assert_eq!(scaling["limit"], "imbalance", "{scaling:#}");
        assert!(sentence(&document).contains("rank 2 ("), "{}", sentence(&document));
    }

    pub fn write_other_version(path: &Path) {
        let label = b"halfpower-hosts-version ";
        let mut program = fs::read(HALFPOWER).unwrap();
        let place = program.windows(label.len()).position(|window| window == label).unwrap();
        program[place + label.len()] = b'9';
        fs::write(path, program).unwrap();
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }

    #[test]
    fn another_version_is_named_and_nothing_is_written() {
        or_skip!(mpi_is_here());
        let directory = memory_directory();
        let other = directory.path().join("other");
        write_other_version(&other);
        let blocks: [(usize, &[&str], &str); 2] =
            [(2, &[], HALFPOWER), (1, &[], other.to_str().unwrap())];
        let target = directory.path().join("target");
        fs::create_dir(&target).unwrap();
        let ended = finish(launch(&target, &blocks, &format!("run . {PACED}")));
        let version = env!("CARGO_PKG_VERSION");
        let other = format!("9{}", &version[1..]);
        ended.refused(&[
            "rank 2 (",
            &format!("runs halfpower {other}"),
            &format!("runs {version}"),
        ]);
        assert!(test_files(&target).is_empty());
    }

    #[test]
    fn one_rank_without_space_stops_all_and_nothing_is_written() {
        or_skip!(mpi_is_here());
        let directory = memory_directory();
        let small = or_skip!(Mount::tmpfs("1m"));
        let blocks: [(usize, &[&str], &str); 2] =
            [(1, &[], HALFPOWER), (1, &["-wdir", small.name()], HALFPOWER)];
        let ended = finish(launch(directory.path(), &blocks, &format!("run . {PACED}")));
        ended.refused(&["rank 1 (", "does not fit", "nothing was written"]);
        assert!(test_files(directory.path()).is_empty());
        assert!(test_files(Path::new(small.name())).is_empty());
    }

    #[test]
    fn several_file_systems_are_named() {
        or_skip!(mpi_is_here());
        let _alone = alone();
        let (here, there) = (memory_directory(), memory_directory());
        let blocks: [(usize, &[&str], &str); 2] =
            [(1, &[], HALFPOWER), (1, &["-wdir", there.path().to_str().unwrap()], HALFPOWER)];
        let document = document(&finish(launch(here.path(), &blocks, &format!("run . {PACED}"))));
        assert_eq!(document["clients"]["same_directory"], false);
        let words = document["warnings"].to_string();
        assert!(words.contains("rank 1 (") && words.contains("several file systems"), "{words}");
    }

    #[test]
    fn a_clock_that_is_off_by_seconds_does_no_harm() {
        or_skip!(mpi_is_here());
        let _alone = alone();
        let directory = memory_directory();
        let shifted = ["unshare", "--time", "--fork", "--monotonic", "3"];
        let can =
            common::places::tool("unshare", &["--time", "--fork", "--monotonic", "3", "true"]);
        or_skip!(can.map(|_| ()));
        let blocks: [(usize, &[&str], &str); 2] = [(1, &[], HALFPOWER), (1, &shifted, HALFPOWER)];
        let ended = finish(launch(directory.path(), &blocks, &format!("run . {PACED}")));
        let document = document(&ended);
        let offset = number(&document, "/clients/ranks/1/clock_offset_ns");
        assert!((offset / 3e9 - 1.0).abs() < 0.01, "{offset}");
        for run in points(&document)[0]["clients"]["runs"].as_array().unwrap() {
            assert!(number(run, "/begin_spread_ns") < 1e8, "{run:#}");
        }
    }

    pub fn process_of(mpirun: u32, rank: &str) -> Option<u32> {
        let tasks = fs::read_dir(format!("/proc/{mpirun}/task")).ok()?;
        let children: String = tasks
            .flatten()
            .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
            .collect();
        let variable = format!("OMPI_COMM_WORLD_RANK={rank}");
        children.split_whitespace().filter_map(|child| child.parse().ok()).find(|child: &u32| {
            let environment = fs::read(format!("/proc/{child}/environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|one| one == variable.as_bytes())
        })
    }

    #[test]
    fn a_killed_rank_is_named_and_finished_points_stay() {
        or_skip!(mpi_is_here());
        let _alone = alone();
        let directory = memory_directory();
        let words = "run . --size 2m --buffered --request 4k --rate 300 --runtime 300ms --repeats 100 --max-repeats 100 --clients 1,3 --progress none";
        let mut command = launch(directory.path(), &[(3, &[], HALFPOWER)], words);
        let mpirun = command.spawn().unwrap();
        let mut victim = None;
        common::wait_until("rank 2 runs", || {
            victim = process_of(mpirun.id(), "2");
            victim.is_some() && test_files(directory.path()).len() == 3
        });
        std::thread::sleep(std::time::Duration::from_secs(3));
        let victim = victim.unwrap().to_string();
        common::places::tool("kill", &["-KILL", &victim]).unwrap();
        let ended = ended(mpirun);
        assert_ne!(ended.code, Some(0));
        assert!(ended.stderr.contains("halfpower: rank 2 ("), "{}", ended.stderr);
        let shown = &ended.stdout;
        assert!(shown.contains("it ended early: rank 2 ("), "{shown}");
        assert!(shown.contains("All worked together for"), "finished points stay: {shown}");
        // The killed rank's file is removed by the next command there.
        assert!(test_files(directory.path()).len() <= 1);
        common::halfpower_in(directory.path(), "run . --size 1m --bytes 64k --buffered --json")
            .good_json();
        assert!(test_files(directory.path()).is_empty());
    }

    #[test]
    fn ranks_on_one_host_are_not_programs_that_disturb_each_other() {
        or_skip!(mpi_is_here());
        let _alone = alone();
        let directory = memory_directory();
        let words = "run . --size 2m --buffered --request 4k --runtime 400ms --repeats 4 --max-repeats 4 --progress none --json";
        let document = document(&clients(directory.path(), 3, words));
        let point = &points(&document)[0];
        let others = (point["doubts"].as_array().unwrap().iter())
            .filter(|doubt| doubt["words"].to_string().contains("other programs"))
            .map(|doubt| number(doubt["figures"].as_array().unwrap().last().unwrap(), "/1/value"));
        // Two ranks keep most of the processors busy.
        assert!(others.clone().all(|busy| busy < 0.5), "{}", warnings(&document));
        let own = number(point, "/achieved/process_busy_percent") / 100.0;
        let of_host = number(point, "/achieved/busy_processors");
        assert!(of_host > own * 0.9, "{of_host} processors were busy, and {own} with the ranks");
    }

    pub const PACED_ALONE: &str = "run . --size 1m --bytes 64k --buffered --json";

    #[test]
    fn ctrl_c_keeps_finished_points_and_leaves_no_file() {
        or_skip!(mpi_is_here());
        let _alone = alone();
        let directory = memory_directory();
        let words = "run . --size 2m --buffered --request 4k --rate 300 --runtime 300ms --repeats 100 --max-repeats 100 --clients 1,2 --progress none";
        let mut command = launch(directory.path(), &[(2, &[], HALFPOWER)], words);
        let mpirun = command.spawn().unwrap();
        common::wait_until("both ranks run", || test_files(directory.path()).len() == 2);
        std::thread::sleep(std::time::Duration::from_secs(3));
        common::places::tool("kill", &["-INT", &mpirun.id().to_string()]).unwrap();
        let ended = ended(mpirun);
        assert_ne!(ended.code, Some(0));
        let shown = &ended.stdout;
        assert!(shown.contains("it ended early: interrupted"), "{shown}");
        assert!(shown.contains("All worked together for"), "finished points stay: {shown}");
        // mpirun kills a rank that has not ended after a second. The next run removes its file.
        if !test_files(directory.path()).is_empty() {
            common::halfpower_in(directory.path(), PACED_ALONE).good_json();
        }
        assert!(test_files(directory.path()).is_empty());
    }

    /// Uses a disk that admits 100 MB/s: requests in flight are a small part of each run, and the
    /// processors are not the limit.
    #[test]
    fn a_study_finds_the_number_of_clients_and_their_limit() {
        or_skip!(mpi_is_here());
        let _alone = alone();
        let mount = or_skip!(Mount::on_loop("ext4", 96 << 20));
        let admitted = [("read_bps", 100_000_000), ("write_bps", 100_000_000)];
        let _throttle = or_skip!(Throttle::set(mount.device(), &admitted));
        let output = memory_directory();
        let words = format!(
            "study {} --quick --budget 60s --only clients --size 8m --output {} --progress none --json",
            mount.name(),
            output.path().display()
        );
        let ended = clients(Path::new("/"), 3, &words);
        let document = document(&ended);
        assert_eq!(document["kind"], "study");
        assert!(document["rates"].is_null(), "--only leaves operations on files out");
        assert_eq!(document["clients"]["ranks"].as_array().unwrap().len(), 3);
        let experiments = document["experiments"].as_array().unwrap();
        let own = experiments.iter().find(|one| one["id"] == "clients").unwrap();
        let sentence = own["sentence"].as_str().unwrap();
        assert!(sentence.contains("reaches half of the peak"), "{sentence}");
        let large = &document["scaling"][0];
        assert_eq!(large["half_power_clients"], 1, "{large:#}");
        // One client has the whole rate, and three share it.
        assert_eq!(large["limit"], "server", "{large:#}");
        let rate = number(large, "/peak_bytes_per_s") / 100e6;
        assert!((rate - 1.0).abs() < 0.15, "{large:#}");
        let report = fs::read_to_string(output.path().join("report.html")).unwrap();
        assert!(report.contains("How many clients?"), "the report has the answer");
        // The device is the limit with any of the files.
        for (files, how) in [("segments", "a part each"), ("interleaved", "requests in turn")] {
            let compared = format!("with one file for all 3 clients ({how})");
            assert!(sentence.contains(&compared), "{sentence}");
            let rates: Vec<f64> = points(&document)
                .iter()
                .filter(|point| point["workload"]["client_files"] == files)
                .map(|point| number(point, "/throughput_bytes_per_s") / 100e6)
                .collect();
            assert!(rates.len() >= 2, "{files}: {rates:?}");
            assert!(rates.iter().all(|rate| (rate - 1.0).abs() < 0.15), "{files}: {rates:?}");
        }
        assert!(test_files(Path::new(mount.name())).is_empty());
    }

    fn resumed(words: &str, interrupt: impl Fn(u32)) -> Value {
        let directory = memory_directory();
        let state = memory_directory();
        let start = |more: &str| {
            let words = format!("{words} --progress none --json {more}");
            let mut command = launch(directory.path(), &[(2, &[], HALFPOWER)], &words);
            command.env("HALFPOWER_STATE", state.path());
            command.env("HALFPOWER_HISTORY", state.path().join("history.sqlite"));
            command
        };
        let mpirun = start("").spawn().unwrap();
        let kept = || {
            let files = fs::read_dir(state.path().join("unfinished")).into_iter().flatten();
            files.map(|one| fs::read_to_string(one.unwrap().path()).unwrap()).collect::<String>()
        };
        common::wait_until("some runs are kept", || kept().matches("\"run\"").count() >= 4);
        interrupt(mpirun.id());
        assert_ne!(ended(mpirun).code, Some(0));
        let before = kept().lines().count();
        assert!(before >= 4, "{before}");
        let resumed = document(&finish(start("--resume")));
        let warnings = resumed["warnings"].to_string();
        assert!(warnings.contains("--resume took the runs before"), "{warnings}");
        assert_eq!(kept(), "", "a complete command leaves no runs");
        let mut history = command(HALFPOWER, ["history", "--json"]);
        history.env("HALFPOWER_HISTORY", state.path().join("history.sqlite"));
        let history = finish(history).good_json().to_string();
        assert!(history.contains(resumed["kind"].as_str().unwrap()), "{history}");
        assert!(test_files(directory.path()).is_empty());
        resumed
    }

    fn send(signal: &str, process: u32) {
        common::places::tool("kill", &[signal, &process.to_string()]).unwrap();
    }

    fn kill_rank_0(mpirun: u32) {
        send("-KILL", process_of(mpirun, "0").unwrap());
    }

    #[test]
    fn an_interrupted_sweep_of_all_clients_goes_on() {
        or_skip!(mpi_is_here());
        let _alone = alone();
        // Not by time: a run that seems to warm up would not count.
        let words = "sweep . --size 2m --buffered --request 4k,8k --rate 300 --bytes 512k --repeats 3 --max-repeats 3 --clients 1,2";
        let by_user = resumed(words, |mpirun| send("-INT", mpirun));
        for sweep in [by_user, resumed(words, kill_rank_0)] {
            assert_eq!(points(&sweep).len(), 4);
            let repeats = points(&sweep).iter().map(|point| number(point, "/repeats"));
            let repeats: Vec<f64> = repeats.collect();
            assert!(repeats.iter().all(|&count| count == 3.0), "{repeats:?} {}", warnings(&sweep));
        }
    }

    #[test]
    fn a_study_whose_rank_0_was_killed_goes_on() {
        or_skip!(mpi_is_here());
        let _alone = alone();
        let output = memory_directory();
        let words = format!(
            "study . --quick --budget 12s --only clients --size 4m --output {}",
            output.path().display()
        );
        let study = resumed(&words, kill_rank_0);
        assert!(points(&study).len() > 4, "{}", points(&study).len());
    }

    #[test]
    fn options_of_one_client_are_refused_for_many() {
        or_skip!(mpi_is_here());
        let directory = memory_directory();
        for (command, option) in
            [("run", "--max-written 1g"), ("study", "--max-written 1g"), ("study", "--sustained")]
        {
            let ended = clients(directory.path(), 2, &format!("{command} . {option}"));
            ended.refused(&[option.split(' ').next().unwrap(), "one client only"]);
        }
        assert!(test_files(directory.path()).is_empty());
    }

    #[test]
    fn one_file_for_all_is_read_in_equal_parts() {
        or_skip!(mpi_is_here());
        let _alone = alone();
        let directory = memory_directory();
        let file = directory.path().join("shared");
        let content: Vec<u8> = (0..3u32 << 20).map(|at| (at / 65536) as u8).collect();
        fs::write(&file, &content).unwrap();
        let name = file.to_str().unwrap();
        let words = format!(
            "run {name} --shared-file --buffered --request 64k --bytes 1m --repeats 1 --max-repeats 1 --progress none --json"
        );
        let read = document(&clients(directory.path(), 3, &words));
        assert_eq!(read["target"]["size_bytes"], 3 << 20, "one file, not three");
        let point = &points(&read)[0];
        assert_eq!(number(point, "/latency_ns/count"), 48.0);
        assert_eq!(fs::read(&file).unwrap(), content, "only read");
        let run = |words: &str| clients(directory.path(), 3, words);
        run("run . --shared-file").refused(&["--shared-file", "--size"]);
        run(&format!("run {name} --shared-file --request 4m")).refused(&[
            "--shared-file",
            "3 MiB",
            "3 clients",
        ]);
        assert_eq!(fs::read(&file).unwrap(), content, "nothing was written");
    }
}
