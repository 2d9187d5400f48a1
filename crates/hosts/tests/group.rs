//! Ranks in one process on real files: one start, clocks that differ, refusals, lost ranks.

use host::Host;
use hosts::{Error, GroupMachine, Hello, Leader, ThreadRank, follow, scalings, thread_group};
use machine::{
    Capabilities, Engine, Error as MachineError, Machine, MachineFacts, MemoryUse, Nanos, Part,
    RequestSource, Result, RunOptions, RunUsage, Start, TargetFacts, TargetSpec,
};
use measure::{Repeats, RunRequest, Runner};
use results::{Point, PointClients, points_of};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use workload::{Stop, Workload};

static INTERRUPT: AtomicBool = AtomicBool::new(false);

struct Odd {
    host: Host,
    ahead_ns: i64,
    late_ns: Nanos,
    fails: bool,
}

impl Odd {
    fn new() -> Odd {
        Odd { host: Host::new(&INTERRUPT), ahead_ns: 0, late_ns: 0, fails: false }
    }
}

impl Machine for Odd {
    type Target = <Host as Machine>::Target;

    fn facts(&self) -> MachineFacts {
        self.host.facts()
    }

    fn capabilities(&self) -> Capabilities {
        self.host.capabilities()
    }

    fn now(&self) -> Nanos {
        self.host.now().saturating_add_signed(self.ahead_ns)
    }

    fn pause(&self, for_ns: Nanos) {
        self.host.pause(for_ns);
    }

    fn open(&self, spec: &TargetSpec) -> Result<Self::Target> {
        self.host.open(spec)
    }

    fn open_all(
        &self,
        specs: &[TargetSpec],
        check: &mut dyn FnMut(&[TargetFacts]) -> Result<()>,
    ) -> Result<Vec<Self::Target>> {
        self.host.open_all(specs, check)
    }

    fn target_facts(&self, target: &Self::Target) -> TargetFacts {
        self.host.target_facts(target)
    }

    fn run<S: RequestSource>(
        &self,
        parts: &mut [Part<'_, Self::Target, S>],
        mut options: RunOptions,
    ) -> Result<RunUsage> {
        if self.fails {
            return Err(MachineError::Unsupported("the disk is on fire".into()));
        }
        if let Start::At(at) = &mut options.start {
            *at = at.saturating_add_signed(-self.ahead_ns) + self.late_ns;
        }
        let mut usage = self.host.run(parts, options)?;
        usage.began = usage.began.saturating_add_signed(self.ahead_ns);
        Ok(usage)
    }

    fn restripe(&self, target: &mut Self::Target, members: &[u32], chunk: u64) -> Result<()> {
        self.host.restripe(target, members, chunk)
    }

    fn memory(&self, for_ns: Nanos) -> Result<Vec<MemoryUse>> {
        self.host.memory(for_ns)
    }
}

fn hello(rank: usize) -> Hello {
    Hello {
        version: "1.2.3".into(),
        host: format!("node{rank}"),
        processors: 2,
        process: rank as u32,
        process_space: "k".into(),
        clock_space: format!("clock {rank}"),
    }
}

fn with_group<T>(
    machines: Vec<Odd>,
    hello: impl Fn(usize) -> Hello + Sync,
    lead: impl FnOnce(&ThreadRank, &Odd) -> T,
) -> T {
    let mut ranks = thread_group(machines.len());
    let mut machines = machines.into_iter();
    std::thread::scope(|scope| {
        let (first, own) = (ranks.remove(0), machines.next().unwrap());
        for (rank, machine) in ranks.into_iter().zip(machines) {
            let hello = &hello;
            scope.spawn(move || {
                use hosts::Group;
                let own = hello(rank.rank());
                // The other ranks end without the leader, which the test looks at.
                let _ = follow(&rank, &machine, &own, &|| false, &mut hosts::no_jobs);
            });
        }
        lead(&first, &own)
    })
}

fn workload(ns: u64) -> Workload {
    Workload {
        engine: Engine::Sync,
        buffering: machine::Buffering::Buffered,
        request_bytes: 4096,
        stop: Stop::AfterNs(ns),
        // A rate that two processors reach easily, at once on all ranks.
        rate_iops: Some(500.0),
        ..Workload::default()
    }
}

fn request(directory: &Path, workload: &Workload) -> RunRequest {
    let spec = TargetSpec {
        places: vec![directory.to_owned()],
        size: Some(1 << 20),
        ..TargetSpec::default()
    };
    RunRequest::in_turn(&spec, std::slice::from_ref(workload), Repeats::exactly(2))
}

fn measured<'a>(
    group: &GroupMachine<'a, ThreadRank, Odd>,
    request: &RunRequest,
    numbers: &[u32],
    repeats: u32,
    mut on_run: impl FnMut(usize),
) -> Vec<Point> {
    let with =
        |&clients: &u32| Workload { clients: Some(clients), ..request.parts[0].workload.clone() };
    let workloads: Vec<Workload> = numbers.iter().map(with).collect();
    let request = RunRequest::in_turn(&request.targets[0], &workloads, Repeats::exactly(repeats));
    let mut runner = Runner::open(group, &request).unwrap();
    let samples = match runner.run(&request, |_, runs| on_run(runs)) {
        Err(MachineError::Interrupted) => runner.take_interrupted().unwrap(),
        samples => samples.unwrap(),
    };
    points_of(&workloads, &samples)
}

fn clients_of(point: &Point) -> &PointClients {
    point.numbers.as_ref().unwrap().clients.as_ref().unwrap()
}

fn is_empty(directory: &Path) -> bool {
    directory.read_dir().unwrap().next().is_none()
}

#[test]
fn clocks_that_differ_by_seconds_still_give_one_start() {
    let directory = tempfile::tempdir().unwrap();
    let mut machines: Vec<Odd> = (0..3).map(|_| Odd::new()).collect();
    machines[1].ahead_ns = 3_000_000_000;
    machines[2].ahead_ns = -1_000_000_000;
    let workload = workload(300_000_000);
    let request = request(directory.path(), &workload);
    let points = with_group(machines, hello, |rank, machine| {
        let leader = Leader::meet(rank, machine, &hello(0), &|| false).unwrap();
        let group = GroupMachine::new(leader, 1);
        let points = measured(&group, &request, &[1, 3], 2, |_| {});
        let clients = group.clients();
        assert_eq!(clients.same_directory, Some(true));
        let offsets: Vec<f64> =
            clients.ranks.iter().map(|one| one.clock_offset_ns as f64 / 1e9).collect();
        assert!((offsets[1] - 3.0).abs() < 0.05 && (offsets[2] + 1.0).abs() < 0.05, "{offsets:?}");
        assert!(matches!(group.finish(), (None, false)));
        points
    });
    let [one, all] = points.as_slice() else { panic!("{points:?}") };
    assert_eq!((clients_of(one).each.len(), clients_of(all).each.len()), (1, 3));
    let iops = |point: &Point| point.numbers.as_ref().unwrap().iops;
    assert!((iops(one) / 500.0 - 1.0).abs() < 0.1, "{}", iops(one));
    assert!((iops(all) / 1500.0 - 1.0).abs() < 0.1, "{}", iops(all));
    // Seconds of difference would leave no window at all.
    let runs = &clients_of(all).runs;
    assert!(runs.iter().all(|run| run.begin_spread_ns < 200_000_000), "{runs:?}");
    assert!(clients_of(all).fairness.unwrap() > 0.98);
    let scaling = &scalings(&points)[0];
    assert_eq!(scaling.growth.limit, results::ScalingLimit::Client, "{scaling:?}");
    assert!(is_empty(directory.path()), "all test files are removed");
}

#[test]
fn a_late_client_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut machines: Vec<Odd> = (0..3).map(|_| Odd::new()).collect();
    machines[2].late_ns = 300_000_000;
    let workload = workload(600_000_000);
    let request = request(directory.path(), &workload);
    let point = with_group(machines, hello, |rank, machine| {
        let leader = Leader::meet(rank, machine, &hello(0), &|| false).unwrap();
        let group = GroupMachine::new(leader, 2);
        let point = measured(&group, &request, &[3], 1, |_| {}).remove(0);
        group.finish();
        point
    });
    let run = &clients_of(&point).runs[0];
    assert_eq!((run.began_last, run.finished_last), (2, 2));
    assert!((290_000_000..450_000_000).contains(&run.begin_spread_ns), "{run:?}");
    assert!(run.window_ns < 320_000_000, "{run:?}");
    assert!(clients_of(&point).each[2].began_late_ns >= 290_000_000);
    let numbers = point.numbers.as_ref().unwrap();
    let words = numbers.warnings.join("\n");
    assert!(words.contains("rank 2 (node2) began 3") && words.contains("of the run"), "{words}");
    // While all worked, each had its rate.
    assert!((numbers.iops / 1500.0 - 1.0).abs() < 0.15, "{}", numbers.iops);
}

#[test]
fn another_version_is_refused_before_anything_is_opened() {
    let hello = |rank: usize| Hello {
        version: if rank == 1 { "1.2.4".into() } else { "1.2.3".into() },
        ..hello(rank)
    };
    let machines = (0..3).map(|_| Odd::new()).collect();
    let error = with_group(machines, hello, |rank, machine| {
        Leader::meet(rank, machine, &hello(0), &|| false).map(|_| ()).unwrap_err()
    });
    assert!(error.is_usage());
    let words = error.to_string();
    assert!(
        words.contains("rank 1 (node1): it runs halfpower 1.2.4, and rank 0 (node0) runs 1.2.3"),
        "{words}"
    );
}

#[test]
fn the_refusal_of_one_rank_stops_all_before_anything_is_written() {
    for refusing in [0, 2] {
        let directory = tempfile::tempdir().unwrap();
        let workload = workload(10_000_000);
        let mut requests = vec![request(directory.path(), &workload); 3];
        // A file that this rank does not have.
        requests[refusing].targets[0].places = vec![directory.path().join("missing/file")];
        let error = with_group((0..3).map(|_| Odd::new()).collect(), hello, |rank, machine| {
            let mut leader = Leader::meet(rank, machine, &hello(0), &|| false).unwrap();
            let error = leader.open(&requests, 3).map(|_| ()).unwrap_err();
            leader.finish();
            error
        });
        let words = error.to_string();
        assert!(matches!(error, Error::Refused(_)), "{words}");
        assert!(words.starts_with(&format!("rank {refusing} (node{refusing}): ")), "{words}");
        assert!(words.contains("missing/file"), "{words}");
        assert!(is_empty(directory.path()));
    }
}

#[test]
fn ranks_on_another_file_system_are_named() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let workload = workload(10_000_000);
    let mut requests = vec![request(here.path(), &workload); 2];
    requests[1] = request(there.path(), &workload);
    with_group((0..2).map(|_| Odd::new()).collect(), hello, |rank, machine| {
        let mut leader = Leader::meet(rank, machine, &hello(0), &|| false).unwrap();
        let open = leader.open(&requests, 4).unwrap();
        assert_eq!(open.same_directory, Some(false));
        assert_eq!(open.elsewhere, ["rank 1 (node1)"]);
        drop(open);
        leader.finish();
    });
    assert!(is_empty(here.path()) && is_empty(there.path()));
}

#[test]
fn a_failed_run_is_the_error_of_its_point_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let mut machines: Vec<Odd> = (0..2).map(|_| Odd::new()).collect();
    machines[1].fails = true;
    let workload = workload(50_000_000);
    let request = request(directory.path(), &workload);
    let points = with_group(machines, hello, |rank, machine| {
        let leader = Leader::meet(rank, machine, &hello(0), &|| false).unwrap();
        let group = GroupMachine::new(leader, 5);
        let points = measured(&group, &request, &[1, 2], 1, |_| {});
        assert!(matches!(group.finish(), (None, false)));
        points
    });
    let [one, both] = points.as_slice() else { panic!("{points:?}") };
    assert!(one.numbers.is_some(), "one client works");
    assert!(both.numbers.is_none(), "a failed measurement is no number");
    assert_eq!(both.error.as_deref(), Some("rank 1 (node1): the disk is on fire"));
}

#[test]
fn a_lost_rank_is_named_and_finished_points_stay() {
    let directory = tempfile::tempdir().unwrap();
    let workload = workload(50_000_000);
    let request = request(directory.path(), &workload);
    let mut ranks = thread_group(2);
    let (second, first) = (ranks.remove(1), ranks.remove(0));
    let leaves = AtomicBool::new(false);
    let points = std::thread::scope(|scope| {
        scope.spawn(|| {
            let machine = Odd::new();
            let _ = follow(
                &second,
                &machine,
                &hello(1),
                &|| leaves.load(Ordering::Relaxed),
                &mut hosts::no_jobs,
            );
            drop(second);
        });
        let machine = Odd::new();
        let leader = Leader::meet(&first, &machine, &hello(0), &|| false).unwrap();
        let group = GroupMachine::new(leader, 6);
        let points = measured(&group, &request, &[1, 2], 2, |runs| {
            leaves.store(runs >= 1, Ordering::Relaxed);
            // It leaves 900 ms after its interrupt.
            machine.pause(1_000_000_000);
        });
        assert_eq!(
            group.warnings().last().unwrap(),
            "it ended early: rank 1 (node1) ended or does not answer; the launcher's own messages may say why"
        );
        let (Some(Error::Lost(who)), true) = group.finish() else { panic!("it lost a rank") };
        assert_eq!(who, ["rank 1 (node1)"]);
        points
    });
    let [one, both] = points.as_slice() else { panic!("{points:?}") };
    assert_eq!((one.workload.clients, one.numbers.is_some()), (Some(1), true), "{points:?}");
    assert!(both.numbers.is_none());
}

#[test]
fn jobs_reach_their_ranks_begin_together_and_fail_by_name() {
    let mut ranks = thread_group(3).into_iter();
    let first = ranks.next().unwrap();
    std::thread::scope(|scope| {
        for rank in ranks {
            scope.spawn(move || {
                use hosts::Group;
                let number = rank.rank();
                let machine = Odd::new();
                let mut perform = |job: &str, start: Option<machine::Nanos>| match job {
                    "fail" => Err(MachineError::Unsupported("no luck".into()).into()),
                    job => Ok(format!("{job} by {number}, together: {}", start.is_some())),
                };
                let _ = follow(&rank, &machine, &hello(number), &|| false, &mut perform);
            });
        }
        let machine = Odd::new();
        let mut leader = Leader::meet(&first, &machine, &hello(0), &|| false).unwrap();
        let mut own = |job: &str, _: Option<machine::Nanos>| Ok(format!("{job} here"));
        let jobs = [(2, "two".to_owned()), (0, "none".into()), (1, "one".into())];
        let done = leader.jobs(&jobs, true, &mut own).unwrap();
        let answers: Vec<&str> = done.iter().map(|one| one.answer.as_str()).collect();
        assert_eq!(answers, ["two by 2, together: true", "none here", "one by 1, together: true"]);
        let failed = leader.jobs(&[(1, "fail".into()), (2, "x".into())], false, &mut own);
        assert_eq!(failed.unwrap_err().to_string(), "rank 1 (node1): no luck");
        let here = tempfile::tempdir().unwrap();
        assert!(leader.look(here.path(), 9).unwrap().is_empty());
        assert!(leader.look(std::path::Path::new("/no/such"), 10).is_err());
        leader.finish();
    });
}
