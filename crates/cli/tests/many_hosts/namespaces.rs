//! Three hosts, each with its own network, mount table and name; mpirun reaches them over TCP.

use crate::common::places::{Mount, memory_directory, tool};
use crate::common::{self, Ended, HALFPOWER, alone, command, ended, finish, points, test_files};
use crate::or_skip;
use crate::over_mpi::{PACED_ALONE, document, mpi_is_here, warnings};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The test's network: the launcher has address 1, the hosts 11, 12 and 13.
const NET: &str = "10.231.7";

struct Hosts {
    name: String,
    own: tempfile::TempDir,
    shared: tempfile::TempDir,
}

impl Hosts {
    fn new() -> Result<Hosts, String> {
        mpi_is_here()?;
        // An interface's name has at most 15 characters. The kernel removes the interfaces of an
        // earlier test later than its namespaces.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("hp{}-{made}", std::process::id() % 100_000);
        let hosts = Hosts { name, own: memory_directory(), shared: memory_directory() };
        hosts.make()?;
        let agent = format!(
            "#!/bin/sh\nn=${{1#{NET}.1}}; shift\nfirst=$(cat {0}/first-$n 2>/dev/null || true)\n\
             test -e {0}/outside-$n && . {0}/outside-$n\n\
             exec ip netns exec {1}-$n unshare --uts sh -c \"hostname node$n; $first $*\"\n",
            hosts.own.path().display(),
            hosts.name
        );
        let path = hosts.agent();
        fs::write(&path, agent).map_err(|error| error.to_string())?;
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&path, executable).map_err(|error| error.to_string())?;
        Ok(hosts)
    }

    fn agent(&self) -> String {
        self.own.path().join("agent").display().to_string()
    }

    fn make(&self) -> Result<(), String> {
        let ip = |words: String| tool("ip", &words.split(' ').collect::<Vec<_>>()).map(drop);
        let name = &self.name;
        ip(format!("link add {name}br type bridge"))?;
        ip(format!("addr add {NET}.1/24 dev {name}br"))?;
        ip(format!("link set {name}br up"))?;
        for n in 1..=3 {
            ip(format!("netns add {name}-{n}"))?;
            ip(format!("link add {name}v{n} type veth peer name eth0 netns {name}-{n}"))?;
            ip(format!("link set {name}v{n} master {name}br up"))?;
            ip(format!("-n {name}-{n} addr add {NET}.1{n}/24 dev eth0"))?;
            ip(format!("-n {name}-{n} link set eth0 up"))?;
            ip(format!("-n {name}-{n} link set lo up"))?;
        }
        Ok(())
    }

    /// Sets a shell command that the host runs before it starts its ranks; it ends with a
    /// semicolon.
    fn first(&self, host: u32, shell: &str) {
        fs::write(self.own.path().join(format!("first-{host}")), shell).unwrap();
    }

    fn outside(&self, host: u32, shell: &str) {
        fs::write(self.own.path().join(format!("outside-{host}")), shell).unwrap();
    }

    fn launch(&self, words: &str) -> Command {
        let (agent, net) = (self.agent(), format!("{NET}.0/24"));
        let hosts = format!("{NET}.11,{NET}.12,{NET}.13");
        let fixed = [
            "--allow-run-as-root",
            "--mca",
            "plm_rsh_agent",
            &agent,
            "--mca",
            "plm_rsh_no_tree_spawn",
            "1",
            "--mca",
            "oob_tcp_if_include",
            &net,
            "--mca",
            "btl",
            "tcp,self",
            "--mca",
            "btl_tcp_if_include",
            &net,
            "--host",
            &hosts,
            "-np",
            "3",
            HALFPOWER,
        ];
        let words = words.split_whitespace();
        let mut command = command("mpirun", fixed.into_iter().chain(words));
        command.current_dir(self.shared.path());
        command
    }

    fn run(&self, words: &str) -> Ended {
        finish(self.launch(words))
    }

    fn process_on(&self, host: u32) -> Option<u32> {
        let rank = format!("OMPI_COMM_WORLD_RANK={}", host - 1);
        let is_rank = |process: &u32| {
            let directory = Path::new("/proc").join(process.to_string());
            let name = fs::read_to_string(directory.join("comm")).unwrap_or_default();
            let variables = fs::read(directory.join("environ")).unwrap_or_default();
            name.trim() == "halfpower"
                && fs::read_link(directory.join("cwd")).is_ok_and(|cwd| cwd == self.shared.path())
                && variables.split(|&byte| byte == 0).any(|one| one == rank.as_bytes())
        };
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is_rank)
    }

    fn left(&self) -> usize {
        fs::read_dir(self.shared.path()).unwrap().count()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for n in 1..=3 {
            let _ = tool("ip", &["netns", "del", &format!("{}-{n}", self.name)]);
        }
        let _ = tool("ip", &["link", "del", &format!("{}br", self.name)]);
    }
}

const PACED: &str = "--size 2m --buffered --request 4k --rate 300 --runtime 300ms --repeats 2 --max-repeats 2 --progress none --json";

#[test]
fn three_hosts_measure_together() {
    let _alone = alone();
    let hosts = or_skip!(Hosts::new());
    let document = document(&hosts.run(&format!("run . {PACED}")));
    let names: Vec<&str> = (document["clients"]["ranks"].as_array().unwrap().iter())
        .map(|one| one["host"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["node1", "node2", "node3"]);
    assert_eq!(document["clients"]["same_directory"], true);
    assert!(!document["warnings"].to_string().contains("share"), "{}", document["warnings"]);
    let ior = hosts.run("ior -w -W -r -R -C -e -t 64k -b 64k -s 10 -i 2 -o f");
    assert_eq!(ior.code, Some(0), "{}", ior.stderr);
    for part in ["nodes               : 3", "clients per node    : 1", "wrong data: 0"] {
        assert!(ior.stdout.contains(part), "{}", ior.stdout);
    }
    let mdtest = hosts.run("mdtest -n 20 -w 10 -e 10 -X -N 1 -d .");
    assert!(mdtest.stdout.contains("on 3 node(s)"), "{}\n{}", mdtest.stdout, mdtest.stderr);
    assert_eq!(hosts.left(), 0);
}

#[test]
fn a_host_that_pauses_is_named() {
    let _alone = alone();
    let hosts = or_skip!(Hosts::new());
    let mut mpirun = hosts.launch("ior -w -Y -t 4k -b 1g -D 1 -i 8 -F -o f").spawn().unwrap();
    while mpirun.try_wait().unwrap().is_none() {
        let signal = |name: &str| {
            let process = hosts.process_on(2).map(|process| process.to_string());
            process.map(|process| tool("kill", &[name, &process]))
        };
        signal("-STOP");
        std::thread::sleep(Duration::from_millis(600));
        signal("-CONT");
        std::thread::sleep(Duration::from_millis(200));
    }
    let ior = ended(mpirun);
    // It begins late if it is stopped at the start of a phase, and is slow if it is stopped later.
    let said = ior.stdout.lines().find(|line| {
        let why = line.strip_prefix("WARNING: write: task 1 (node2) ");
        why.is_some_and(|why| why.starts_with("began") || why.starts_with("is slow"))
    });
    assert!(said.is_some(), "{}\n{}", ior.stdout, ior.stderr);
    assert_eq!(hosts.left(), 0);
}

#[test]
fn a_host_at_half_speed_is_named() {
    let _alone = alone();
    let hosts = or_skip!(Hosts::new());
    let mount = or_skip!(Mount::on_loop("ext4", 64 << 20));
    let group = or_skip!(crate::over_mpi::SlowGroup::make(mount.device(), 2_000_000));
    hosts.outside(2, &format!("echo $$ > {}/tasks\n", group.path().display()));
    // Only reads are throttled.
    let file = format!("{}/f", mount.name());
    let write = hosts.run(&format!("ior -w -k -e -t 64k -b 8m -F -o {file}"));
    assert_eq!(write.code, Some(0), "{}", write.stderr);
    let read = hosts.run(&format!("ior -r --posix.odirect -t 64k -b 8m -D 2 -F -o {file}"));
    let said = format!("{}\n{}", read.stdout, read.stderr);
    assert!(said.contains("WARNING: read: task 1 (node2) is slow"), "{said}");
}

#[test]
fn a_host_without_space_is_named_and_nothing_is_written() {
    let _alone = alone();
    let hosts = or_skip!(Hosts::new());
    let shared = hosts.shared.path().display().to_string();
    // The launcher has already entered the directory.
    hosts.first(3, &format!("mount -t tmpfs -o size=1m none {shared}; cd {shared};"));
    let run = hosts.run(&format!("run {shared} {PACED}"));
    run.refused(&["rank 2 (node3)", "does not fit", "nothing was written"]);
    let ior = hosts.run(&format!("ior -w -F -t 64k -b 8m -o {shared}/f"));
    ior.refused(&["task 2 (node3)", "do not fit"]);
    // Under the same name there is another file system.
    let ior = hosts.run(&format!("ior -w -t 64k -b 64k -o {shared}/f"));
    ior.refused(&["rank 2 (node3)", "do not see the directory"]);
    assert_eq!(hosts.left(), 0);
}

#[test]
fn a_host_with_another_version_is_named() {
    let _alone = alone();
    let hosts = or_skip!(Hosts::new());
    let other = hosts.own.path().join("other");
    crate::over_mpi::write_other_version(&other);
    hosts.first(2, &format!("mount --bind {} {HALFPOWER};", other.display()));
    let version = env!("CARGO_PKG_VERSION");
    hosts.run(&format!("run . {PACED}")).refused(&["rank 1 (node2)", &format!("runs {version}")]);
    hosts.run("ior -o f").refused(&["rank 1 (node2)", &format!("runs {version}")]);
    assert_eq!(hosts.left(), 0);
}

#[test]
fn a_clock_that_is_off_on_one_host_does_no_harm() {
    let _alone = alone();
    let hosts = or_skip!(Hosts::new());
    or_skip!(tool("unshare", &["--time", "--fork", "--monotonic", "3", "true"]).map(drop));
    hosts.first(2, "exec unshare --time --fork --monotonic 3 -- ");
    let document = document(&hosts.run(&format!("run . {PACED}")));
    let offset = common::number(&document, "/clients/ranks/1/clock_offset_ns");
    assert!((offset / 3e9 - 1.0).abs() < 0.01, "{offset}");
    assert!(!warnings(&document).contains(" began "), "{}", warnings(&document));
    assert!(!points(&document).is_empty());
    let ior = hosts.run("ior -w -Y -t 4k -b 1g -D 1 -F -o f");
    assert!(!ior.stdout.contains("task 1 (node2) began"), "{}", ior.stdout);
    assert_eq!(hosts.left(), 0);
}

#[test]
fn a_killed_host_is_named_and_no_file_is_left() {
    let _alone = alone();
    let hosts = or_skip!(Hosts::new());
    let saved = hosts.own.path().join("saved.json");
    let run = format!(
        "run . --size 2m --buffered --request 4k --rate 300 --runtime 300ms --repeats 100 --max-repeats 100 --progress none --save {}",
        saved.display()
    );
    // Repeated, because files in memory are written at any speed.
    for words in [&run, "ior -w -Y -t 4k -b 16m -i 10000 -F -o f"] {
        let mpirun = hosts.launch(words).spawn().unwrap();
        let mut victim = None;
        common::wait_until("rank 2 runs", || {
            victim = hosts.process_on(3);
            victim.is_some() && hosts.left() >= 3
        });
        // Some runs are finished.
        std::thread::sleep(Duration::from_secs(3));
        tool("kill", &["-KILL", &victim.unwrap().to_string()]).unwrap();
        let ended = ended(mpirun);
        assert_ne!(ended.code, Some(0));
        // Open MPI itself may fail when it finds the connection broken, and never return; then its
        // launcher names the rank.
        let no_mpi = ended.stderr.contains("halfpower: a rank ended or does not answer");
        let (who, named) = match no_mpi {
            true => ("a rank ended", "process rank 2"),
            false => ("rank 2 (node3)", "halfpower: rank 2 (node3)"),
        };
        assert!(ended.stderr.contains(named), "{words}: {}", ended.stderr);
        // The killed rank could not remove its own file; the next command does, or the user, who
        // has named it.
        assert!(hosts.left() <= 1, "{words}: {}", ended.stderr);
        left_is_removed(hosts.shared.path());
        assert_eq!(hosts.left(), 0);
        if words == run {
            let document: serde_json::Value =
                serde_json::from_str(&fs::read_to_string(&saved).unwrap()).unwrap();
            assert_eq!(document["incomplete"], true);
            assert!(document["warnings"].to_string().contains(who), "{document:#}");
        }
    }
}

fn left_is_removed(directory: &Path) {
    common::halfpower_in(directory, PACED_ALONE).good_json();
    assert!(test_files(directory).is_empty());
    for entry in fs::read_dir(directory).unwrap().flatten() {
        // A file of IOR's has the user's name.
        assert!(entry.file_name().to_string_lossy().starts_with("f."));
        fs::remove_file(entry.path()).unwrap();
    }
}
