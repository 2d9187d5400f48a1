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
