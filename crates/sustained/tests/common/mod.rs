//! Sustained runs on simulated machines.

#![allow(dead_code, reason = "each test binary uses a part")]

use machine::{Machine, TargetSpec};
use results::Program;
use sustained::{SustainPlan, SustainedResult, sustain};
use twin::description::Drive;
use twin::settings::Setup;
use twin::{Twin, preset};

pub const SECOND: u64 = 1_000_000_000;
pub const GIB: f64 = (1u64 << 30) as f64;

fn program() -> Program {
    Program { name: "halfpower".into(), version: "0".into(), arguments: Vec::new() }
}

pub fn run(preset: &str, change: impl FnOnce(&mut Drive), plan: &SustainPlan) -> SustainedResult {
    let mut description = preset::load(preset).unwrap();
    let name = description.volume.drive.clone();
    change(description.drives.get_mut(&name).unwrap());
    let twin = Twin::new(Setup::of(description));
    let spec = TargetSpec { places: vec![format!("twin:{preset}").into()], ..Default::default() };
    let target = twin.open(&spec).unwrap();
    let result = sustain(&twin, &target, plan, program(), &mut |_| true, &mut |_| {}).unwrap();
    assert!(result.written_bytes <= plan.max_written, "{} bytes", result.written_bytes);
    result
}

pub fn long() -> SustainPlan {
    SustainPlan { for_ns: 20_000 * SECOND, max_written: 1 << 50, ..SustainPlan::default() }
}

pub fn near(what: &str, found: f64, truth: f64) -> Option<String> {
    let off = found / truth - 1.0;
    (off.abs() > 0.05).then(|| format!("{what}: {found:.4e} and not {truth:.4e} ({off:+.1e})"))
}

pub fn drive(preset: &str) -> Drive {
    let description = preset::load(preset).unwrap();
    description.drives[&description.volume.drive].clone()
}
