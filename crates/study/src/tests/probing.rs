//! Probing and scheduling on simulated machines of known speed.

use crate::plan::{Effort, Plan};
use crate::probe::probe;
use crate::sampler::Sampler;
use machine::{
    Capabilities, Error, Machine, MachineFacts, MemoryUse, Nanos, Part, RequestSource, Result,
    RunOptions, RunUsage, TargetFacts, TargetSpec,
};
use results::Program;
use twin::Twin;
use workload::OpKind;

const SECOND: Nanos = 1_000_000_000;

struct Other {
    twin: Twin,
    noisy: bool,
    fails: bool,
}

impl Machine for Other {
    type Target = <Twin as Machine>::Target;

    fn facts(&self) -> MachineFacts {
        self.twin.facts()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { noisy: self.noisy, ..self.twin.capabilities() }
    }

    fn now(&self) -> Nanos {
        self.twin.now()
    }

    fn pause(&self, for_ns: Nanos) {
        self.twin.pause(for_ns);
    }

    fn open(&self, spec: &TargetSpec) -> Result<Self::Target> {
        self.twin.open(spec)
    }

    fn target_facts(&self, target: &Self::Target) -> TargetFacts {
        self.twin.target_facts(target)
    }

    fn run<S: RequestSource>(
        &self,
        parts: &mut [Part<'_, Self::Target, S>],
        options: RunOptions,
    ) -> Result<RunUsage> {
        if self.fails {
            return Err(Error::Unsupported("it is broken".into()));
        }
        self.twin.run(parts, options)
    }

    fn restripe(&self, target: &mut Self::Target, members: &[u32], chunk: u64) -> Result<()> {
        self.twin.restripe(target, members, chunk)
    }

    fn memory(&self, _for_ns: Nanos) -> Result<Vec<MemoryUse>> {
        Err(Error::Unsupported("not enough memory".into()))
    }
}

fn other(name: &str, noisy: bool, fails: bool) -> Other {
    Other { twin: Twin::from_name(name).expect("a simulated machine"), noisy, fails }
}

fn plan(budget_ns: Nanos, only: &[&str]) -> Plan {
    Plan {
        budget_ns,
        effort: Effort::Quick,
        only: only.iter().map(ToString::to_string).collect(),
        seed: 7,
    }
}

fn probed(machine: &Other) -> Result<(crate::context::StudyContext, bool)> {
    let mut target = machine.open(&TargetSpec::default())?;
    let mut ignore = |_: crate::Progress<'_>| {};
    let mut sampler =
        Sampler::new(machine, &mut target, machine.now(), 60 * SECOND, 7, &mut ignore);
    let setting = probe(&mut sampler, &plan(60 * SECOND, &[]))?;
    assert!(sampler.entries.is_empty(), "probing runs are too short to count");
    Ok((setting, sampler.bursty))
}

#[test]
fn probing_finds_speed_and_length_of_runs() {
    let (disk, bursty) = probed(&other("twin:gateway-1997", false, false)).expect("it runs");
    let read = disk.speed_of(&disk.base(OpKind::Read));
    assert!(
        (5e6..8e6).contains(&read.bytes_per_s) && (50.0..500.0).contains(&read.iops),
        "{read:?}"
    );
    assert_eq!(
        (disk.run_ns, bursty),
        (10 * SECOND, false),
        "2000 slow requests would take longer than the longest run"
    );
    let (flash, _) = probed(&other("twin:nvme", false, false)).expect("it runs");
    assert!(flash.speed_of(&flash.base(OpKind::Read)).bytes_per_s > 1e9, "{:?}", flash.speed);
    assert!(flash.run_ns < SECOND, "{}", flash.run_ns);
    // On a noisy machine runs are short, but still hold some requests.
    let (noisy, _) = probed(&other("twin:gateway-1997", true, false)).expect("it runs");
    assert!((100_000_000..=SECOND).contains(&noisy.run_ns), "{}", noisy.run_ns);
}

#[test]
fn a_target_that_fails_at_once_is_an_error_with_the_reason() {
    let error = probed(&other("twin:nvme", true, true)).expect_err("nothing can be measured");
    assert!(
        error.to_string().contains("a first read failed")
            && error.to_string().contains("it is broken"),
        "{error}"
    );
}

fn program() -> Program {
    Program { name: "test".into(), version: "0".into(), arguments: Vec::new() }
}

#[test]
fn a_study_of_a_noisy_machine_keeps_its_time_and_confirms_its_peaks() {
    let machine = other("twin:virtio", true, false);
    let plan = plan(20 * SECOND, &["unbuffered", "depth"]);
    let mut last = 0;
    let results =
        crate::study(&machine, &TargetSpec::default(), &plan, program(), &mut |progress| {
            assert!(progress.passed_ns >= last && progress.budget_ns == 20 * SECOND);
            last = progress.passed_ns;
        })
        .expect("a study");
    // The runs that confirm the peaks may overrun the budget.
    assert!(results.elapsed_ns < 25 * SECOND, "{}", results.elapsed_ns);
    let answer = results.answer.expect("an answer");
    assert_eq!(answer.peaks.len(), 2);
    for peak in &answer.peaks {
        let numbers = results.points[peak.point].numbers.as_ref().expect("it was measured");
        assert!(numbers.repeats >= 3, "{numbers:?}");
    }
    for experiment in results.experiments {
        assert_eq!(
            experiment.skipped.is_none(),
            plan.wants(&experiment.id),
            "{}: {}",
            experiment.id,
            experiment.sentence
        );
    }
}

#[test]
fn memory_that_cannot_be_measured_is_an_error_and_no_rate() {
    let machine = other("twin:nvme", false, false);
    let plan = plan(20 * SECOND, &["memory"]);
    let results = crate::study(&machine, &TargetSpec::default(), &plan, program(), &mut |_| {})
        .expect("a study");
    let memory =
        results.experiments.iter().find(|one| one.id == "memory").expect("it was asked for");
    assert!(memory.memory.is_empty());
    let said = "Memory could not be measured: not enough memory.";
    assert!(memory.sentence.starts_with(said), "{}", memory.sentence);
}
