//! The best rate whose slow requests meet a latency goal.

use machine::{Engine, Machine, TargetSpec};
use measure::{Repeats, Runner};
use results::measure_within_p99;
use twin::Twin;
use workload::{Pattern, Stop, Workload};

#[test]
fn the_depth_within_the_goal_is_reported() {
    let twin = Twin::from_name("nvme").expect("a machine");
    let target = twin.open(&TargetSpec::default()).expect("a target");
    let mut runner = Runner::of(&twin, vec![target]);
    let at = |depth| Workload {
        pattern: Pattern::Random,
        engine: Engine::IoUring,
        depth,
        stop: Stop::AfterNs(50_000_000),
        ..Workload::default()
    };
    let goal = (500_000, 64, 0);
    let (points, goal) =
        measure_within_p99(&mut runner, at, goal, Repeats::default(), |_| {}).expect("a search");
    let half = goal.half_depth.expect("half of the rate");
    let best = points[goal.best.expect("a best rate")].workload.depth;
    assert!(half > 1 && half < best, "{goal:?}");
    assert!(
        goal.sentence.contains(&format!("; half of that rate from depth {half}")),
        "{}",
        goal.sentence
    );
}

#[test]
fn no_rate_within_the_goal_is_above_what_is_the_most() {
    let twin = Twin::from_name("nvme").expect("a machine");
    let at = |depth| Workload {
        pattern: Pattern::Random,
        engine: Engine::IoUring,
        request_bytes: 4096,
        depth,
        stop: Stop::AfterNs(50_000_000),
        ..Workload::default()
    };
    for goal_us in [100, 150, 200, 250] {
        let target = twin.open(&TargetSpec::default()).expect("a target");
        let mut runner = Runner::of(&twin, vec![target]);
        let goal = (goal_us * 1000, 256, 0);
        let (points, goal) =
            measure_within_p99(&mut runner, at, goal, Repeats::default(), |_| {}).expect("a goal");
        let depth = points[goal.best.expect("a best rate")].workload.depth;
        let within = points.iter().filter(|point| {
            let p99 = point.numbers.as_ref().unwrap().latency_ns.p99;
            p99 <= goal_us * 1000 && point.workload.depth > depth
        });
        let more = within.max_by_key(|point| point.workload.depth);
        let most = goal.throughput_bytes_per_s.unwrap() * 1.0005;
        let more = more.filter(|point| point.rate().unwrap() > most);
        assert_eq!(more.is_none(), goal.sentence.contains("at most"), "{}", goal.sentence);
        let said = more.is_none_or(|more| {
            let deeper = format!("; {} outstanding keep within it too", more.workload.depth);
            goal.sentence.contains(&deeper)
        });
        assert!(said, "{}", goal.sentence);
    }
}
