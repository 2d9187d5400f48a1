use super::{Comparison, InTurn, Measure, RUN_MEASURES, Series, asked, run_measures};
use crate::document::Program;
use crate::history::Fingerprint;
use crate::point::Point;
use ::measure::turns::{self, Limits, Stop, Turns, in_turn};
use ::measure::{Sample, next_run, sample};
use machine::{Error, Machine, MachineFacts, Nanos, TargetFacts};
use workload::Workload;

const VALUES: usize = RUN_MEASURES.len();

pub trait Arm {
    fn workloads(&self) -> &[Workload];

    fn is_noisy(&self) -> bool;

    /// The [`RUN_MEASURES`].
    fn run(&mut self, question: usize) -> machine::Result<[f64; VALUES]>;

    fn points(&self) -> Vec<Point>;

    /// Those created under names the user chose.
    fn keep_files(&mut self);

    fn facts(&self) -> (MachineFacts, &TargetFacts);
}

type Renew<M> = Box<dyn Fn() -> machine::Result<(M, <M as Machine>::Target)>>;

pub struct OnMachine<M: Machine> {
    machine: M,
    target: M::Target,
    facts: TargetFacts,
    workloads: Vec<Workload>,
    samples: Vec<Vec<Sample>>,
    renew: Option<Renew<M>>,
}

impl<M: Machine> OnMachine<M> {
    /// The workloads were checked for the target.
    pub fn new(machine: M, target: M::Target, workloads: Vec<Workload>) -> OnMachine<M> {
        let facts = machine.target_facts(&target);
        let samples = workloads.iter().map(|_| Vec::new()).collect();
        OnMachine { machine, target, facts, workloads, samples, renew: None }
    }

    /// Runs each workload once, on a new machine: runs repeat exactly, and used caches hold data.
    pub fn exact(self, renew: Renew<M>) -> OnMachine<M> {
        OnMachine { renew: Some(renew), ..self }
    }
}

impl<M: Machine> Arm for OnMachine<M> {
    fn workloads(&self) -> &[Workload] {
        &self.workloads
    }

    fn is_noisy(&self) -> bool {
        self.machine.capabilities().noisy
    }

    fn run(&mut self, question: usize) -> machine::Result<[f64; VALUES]> {
        let workload = &self.workloads[question];
        if let Some(renew) = &self.renew {
            if let Some(sample) = self.samples[question].first() {
                return Ok(run_measures(sample));
            }
            (self.machine, self.target) = renew()?;
        }
        let options = next_run(&self.machine, &self.facts, workload, &self.samples[question]);
        let sample = sample(&self.machine, &mut self.target, workload, options)?;
        let values = run_measures(&sample);
        self.samples[question].push(sample);
        Ok(values)
    }

    fn points(&self) -> Vec<Point> {
        let each = self.workloads.iter().zip(&self.samples);
        each.map(|(workload, samples)| Point::from_samples(workload, &self.facts, samples))
            .collect()
    }

    fn keep_files(&mut self) {
        self.machine.keep(&mut self.target);
    }

    fn facts(&self) -> (MachineFacts, &TargetFacts) {
        (self.machine.facts(), &self.facts)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    pub names: [&'a str; 2],
    pub limits: Limits,
    /// Smaller changes do not count.
    pub worth_percent: f64,
    /// Bytes, or [`Measure::Iops`].
    pub rate: Measure,
    /// Those that distinguish the questions; empty for all.
    pub keys: &'a [&'a str],
    /// The option for more runs: `--budget`.
    pub more: &'a str,
}

pub trait Conduct {
    type Error: From<Error>;

    /// Nanoseconds from an arbitrary start.
    fn now(&self) -> Nanos;

    fn before_run(&mut self, _arm: usize) -> Result<(), Stop<Self::Error>> {
        Ok(())
    }

    /// Blocks count from 1.
    fn on_block(&mut self, question: &str, block: usize, passed_ns: Nanos);
}

struct Both<'a, C> {
    arms: &'a mut [Box<dyn Arm>; 2],
    labels: &'a [String],
    conduct: &'a mut C,
}

impl<C: Conduct> turns::Arms<VALUES> for Both<'_, C> {
    type Error = C::Error;

    fn now(&self) -> Nanos {
        self.conduct.now()
    }

    fn run(&mut self, arm: usize, question: usize) -> Result<[f64; VALUES], Stop<C::Error>> {
        self.conduct.before_run(arm)?;
        self.arms[arm].run(question).map_err(|error| match error {
            Error::Interrupted => Stop::Interrupted(error.into()),
            error if error.is_usage() => Stop::All(error.into()),
            error => Stop::Question(error.to_string()),
        })
    }

    fn on_block(&mut self, question: usize, block: usize, passed_ns: Nanos) {
        self.conduct.on_block(&self.labels[question], block, passed_ns);
    }
}

impl Comparison {
    /// Measures questions until each is decided or a limit is reached.
    ///
    /// # Errors
    /// An interrupt before any result, or the conductor's error.
    pub fn of_arms<C: Conduct>(
        arms: &mut [Box<dyn Arm>; 2],
        turn: Turn<'_>,
        conduct: &mut C,
        program: Program,
    ) -> Result<Comparison, C::Error> {
        let questions = arms[0].workloads().len().min(arms[1].workloads().len());
        let labels: Vec<String> = (0..questions).map(|question| label(arms, question)).collect();
        let turns = in_turn(&mut Both { arms, labels: &labels, conduct }, questions, turn.limits)?;
        let points = [arms[0].points(), arms[1].points()];
        let names = turn.names;
        let failed = turns.answers.iter().zip(&labels).filter_map(|(answer, label)| {
            let (arm, why) = answer.failed.as_ref()?;
            Some(format!("{label}: failed on {}: {why}", names[*arm]))
        });
        let reported = InTurn {
            a: names[0],
            b: names[1],
            blocks: turns.answers.iter().map(|answer| answer.blocks.len()).max().unwrap_or(0)
                as u32,
            worth_percent: turn.worth_percent,
            failed: failed.collect(),
            series: &series(arms, &points[0], &turns, &labels, turn),
            warnings: warnings(&points, &turns, turn),
        };
        Ok(Comparison::in_turn(reported, program))
    }
}

fn label(arms: &[Box<dyn Arm>; 2], question: usize) -> String {
    let [a, b] = [0, 1].map(|arm| arms[arm].workloads()[question].short());
    if a == b { a } else { format!("{a} | {b}") }
}

fn series(
    arms: &[Box<dyn Arm>; 2],
    points: &[Point],
    turns: &Turns<VALUES>,
    labels: &[String],
    turn: Turn<'_>,
) -> Vec<Series> {
    let mut series = Vec::new();
    for (index, answer) in
        turns.answers.iter().enumerate().filter(|(_, answer)| !answer.blocks.is_empty())
    {
        for (place, measure) in RUN_MEASURES.into_iter().enumerate() {
            let in_requests = measure == Measure::Throughput && turn.rate == Measure::Iops;
            let side = |arm: usize| {
                let bytes = if in_requests {
                    f64::from(arms[arm].workloads()[index].request_bytes)
                } else {
                    1.0
                };
                answer
                    .blocks
                    .iter()
                    .map(|block| block[arm][place].map(|value| value / bytes))
                    .collect()
            };
            let mut asked = asked(&points[index]);
            asked.label.clone_from(&labels[index]);
            if !turn.keys.is_empty() {
                asked.keys.retain(|(name, _)| turn.keys.contains(&name.as_str()));
            }
            let measure = if in_requests { Measure::Iops } else { measure };
            series.push(Series {
                asked,
                measure,
                a: side(0),
                b: side(1),
                exact: !turn.limits.noisy,
            });
        }
    }
    series
}

fn warnings(points: &[Vec<Point>; 2], turns: &Turns<VALUES>, turn: Turn<'_>) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for (points, name) in points.iter().zip(turn.names) {
        for warning in points
            .iter()
            .filter_map(|point| point.numbers.as_ref())
            .flat_map(|numbers| &numbers.warnings)
        {
            let said = format!("{name}: {warning}");
            if !warnings.contains(&said) {
                warnings.push(said);
            }
        }
    }
    if turns.interrupted {
        warnings.push("interrupted: what was measured until then is reported".into());
    }
    let open = turns.open();
    if open > 0 {
        warnings.push(format!(
            "{open} of {} questions were still open when it stopped: neither a difference nor its absence to within {} % is sure; give it more {}",
            turns.answers.len(),
            turn.limits.until * 100.0,
            turn.more
        ));
    }
    warnings
}

pub fn fingerprint(arms: &[Box<dyn Arm>; 2], version: &str) -> Fingerprint {
    let of = |arm: &dyn Arm| {
        let (machine, target) = arm.facts();
        Fingerprint::of_facts(&machine, target, version)
    };
    Fingerprint::of_both(of(&*arms[0]), of(&*arms[1]))
}
