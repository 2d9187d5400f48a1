//! What is to be tried.

use crate::document::{LeftOut, Step};
use crate::knobs::{KNOBS, Scene, WorkloadKnob};
use machine::{Alternative, Knob, Matters, Nanos};
use measure::stats::LEAST_BLOCKS;
use workload::{OpKind, Stop, Workload};

/// A knob that the user names, with the values to try; the table's own where there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The knob's name.
    pub knob: String,
    /// Values to try.
    pub values: Vec<String>,
}

impl std::str::FromStr for Wanted {
    type Err = String;

    /// `NAME` or `NAME=VALUE,VALUE`.
    fn from_str(text: &str) -> Result<Wanted, String> {
        let (knob, values) = text.split_once('=').unwrap_or((text, ""));
        let values: Vec<String> =
            values.split(',').map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned).collect();
        if knob.trim().is_empty() || (text.contains('=') && values.is_empty()) {
            return Err(format!("'{text}' names no knob; write NAME, or NAME=VALUE,VALUE"));
        }
        Ok(Wanted { knob: knob.trim().into(), values })
    }
}

/// What is changed in a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A knob of the machine, by its number.
    Machine(usize),
    /// A knob of the workload, by its number in [`KNOBS`].
    Workload(usize),
}

/// One value of one knob, against the present one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// The knob's name.
    pub knob: String,
    /// What it belongs to.
    pub of: String,
    /// What it does.
    pub about: String,
    /// Its value now.
    pub from: String,
    /// The value that is tried.
    pub to: Alternative,
    /// What is changed.
    pub change: Change,
    /// Knobs that it sets anew.
    pub resets: Vec<String>,
    /// The questions that it is asked, by their numbers.
    pub questions: Vec<usize>,
}

/// Where knobs are looked for.
pub struct Scope<'a> {
    /// The machine's knobs.
    pub knobs: &'a [Knob],
    /// The value of a machine's knob that the table does not offer.
    pub value: &'a dyn Fn(usize, &str) -> Alternative,
    /// What workload knobs look at.
    pub scene: Scene<'a>,
}

/// What is to be tried, on which workloads.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The workloads.
    pub questions: Vec<Workload>,
    /// In the order of the table.
    pub trials: Vec<Trial>,
    /// What is not tried, and why.
    pub left_out: Vec<LeftOut>,
}

impl Plan {
    /// Everything that applies and can lose no data; with `wanted`, the knobs that are named there and no others.
    ///
    /// # Errors
    /// A name that no knob of this target has, in a sentence.
    pub fn new(questions: Vec<Workload>, scope: &Scope<'_>, wanted: &[Wanted]) -> Result<Plan, String> {
        let mut plan = Plan { questions, trials: Vec::new(), left_out: Vec::new() };
        check_names(scope, wanted)?;
        for (number, knob) in scope.knobs.iter().enumerate() {
            match asked_for(&knob.name, wanted) {
                Some(named) => plan.machine_knob(number, knob, named, scope),
                None => continue,
            }
        }
        for (number, knob) in KNOBS.iter().enumerate() {
            if let Some(named) = asked_for(knob.name, wanted) {
                plan.workload_knob(number, knob, named, scope);
            }
        }
        Ok(plan)
    }

    fn machine_knob(&mut self, number: usize, knob: &Knob, named: Option<&Wanted>, scope: &Scope<'_>) {
        let all: Vec<usize> = (0..self.questions.len()).collect();
        let touched: Vec<usize> =
            all.iter().copied().filter(|&index| matters(knob.matters, &self.questions[index])).collect();
        // Who names a knob wants to see that it does nothing.
        let questions = if named.is_some() { all } else { touched };
        if questions.is_empty() {
            return self.leave_out(&knob.name, &knob.of, matters_words(knob.matters));
        }
        let values: Vec<Alternative> = match named {
            Some(named) if !named.values.is_empty() => {
                named.values.iter().map(|value| (scope.value)(number, value)).collect()
            }
            _ => knob.alternatives.clone(),
        };
        let values: Vec<Alternative> = values.into_iter().filter(|to| to.value != knob.present).collect();
        if values.is_empty() {
            return self.leave_out(
                &knob.name,
                &knob.of,
                format!("it is {}, and no other value is worth trying", knob.present),
            );
        }
        for to in values {
            let trial = Trial {
                knob: knob.name.clone(),
                of: knob.of.clone(),
                about: knob.about.clone(),
                from: knob.present.clone(),
                to,
                change: Change::Machine(number),
                resets: knob.resets.clone(),
                questions: questions.clone(),
            };
            self.add(trial, named.is_some());
        }
    }

    fn workload_knob(&mut self, number: usize, knob: &WorkloadKnob, named: Option<&Wanted>, scope: &Scope<'_>) {
        let scene = &scope.scene;
        let mut values: Vec<String> = named.map(|named| named.values.clone()).unwrap_or_default();
        if values.is_empty() {
            for value in self.questions.iter().flat_map(|workload| (knob.try_)(workload, scene)) {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        let mut present: Vec<String> = self.questions.iter().map(knob.value).collect();
        present.dedup();
        for value in values {
            let differs = |workload: &Workload| {
                let changed = (knob.with)(workload, &value, scene)?;
                let fits = changed.check(scene.facts.size_bytes, align(&changed, scene)).is_ok();
                (changed != *workload && fits).then_some(())
            };
            let questions: Vec<usize> =
                (0..self.questions.len()).filter(|&index| differs(&self.questions[index]).is_some()).collect();
            if questions.is_empty() {
                // Who names a value learns why it is not tried.
                if named.is_some_and(|named| named.values.contains(&value)) {
                    let why = if present.contains(&value) { "it is so now" } else { "these workloads cannot have it" };
                    self.leave_out(knob.name, "the workload", format!("{value}: {why}"));
                }
                continue;
            }
            let risk = questions.iter().find_map(|&index| (knob.risk)(&self.questions[index], &value));
            let to = Alternative { risk, keep: (knob.keep)(&value, scene), value, ..Alternative::default() };
            let trial = Trial {
                knob: knob.name.into(),
                of: "the workload".into(),
                about: knob.about.into(),
                from: present.join(", "),
                to,
                change: Change::Workload(number),
                resets: Vec::new(),
                questions,
            };
            self.add(trial, named.is_some());
        }
    }

    fn add(&mut self, trial: Trial, named: bool) {
        match &trial.to.risk {
            Some(risk) if !named => {
                let why = format!("{}: {risk}; only --knob {} tries it", trial.to.value, trial.knob);
                self.leave_out(&trial.knob, &trial.of, why);
            }
            _ => self.trials.push(trial),
        }
    }

    fn leave_out(&mut self, knob: &str, of: &str, why: impl Into<String>) {
        self.left_out.push(LeftOut { knob: knob.into(), of: of.into(), why: why.into() });
    }

    /// Questions over all trials.
    pub fn asked(&self) -> usize {
        self.trials.iter().map(|trial| trial.questions.len()).sum()
    }

    /// The least time that it takes: the least blocks of each question, and of the combination; none where runs end after bytes.
    pub fn least_ns(&self, noisy: bool) -> Option<Nanos> {
        let run = |index: &usize| match self.questions[*index].stop {
            Stop::AfterNs(ns) => Some(ns),
            Stop::AfterBytes(_) => None,
        };
        let blocks = if noisy { LEAST_BLOCKS as u64 } else { 1 };
        let runs: Option<Nanos> = self.trials.iter().flat_map(|trial| &trial.questions).map(run).sum();
        Some(runs? * 4 * blocks)
    }

    /// The steps for people and for the document.
    pub fn steps(&self) -> Vec<Step> {
        self.trials.iter().map(Step::of).collect()
    }

    /// The machine's knobs with the values that they are given: what a journal has to know.
    pub fn values_of(&self, knob: usize) -> Vec<String> {
        let of = |trial: &&Trial| trial.change == Change::Machine(knob);
        self.trials.iter().filter(of).map(|trial| trial.to.value.clone()).collect()
    }
}

/// What direct requests must be multiples of.
fn align(workload: &Workload, scene: &Scene<'_>) -> u32 {
    if workload.buffering.is_direct() && scene.facts.direct { scene.facts.direct_align_bytes } else { 1 }
}

/// Whether a knob is asked for: `Some(None)` where all are.
fn asked_for<'a>(knob: &str, wanted: &'a [Wanted]) -> Option<Option<&'a Wanted>> {
    if wanted.is_empty() { Some(None) } else { wanted.iter().find(|one| one.knob == knob).map(Some) }
}

fn check_names(scope: &Scope<'_>, wanted: &[Wanted]) -> Result<(), String> {
    let mut known: Vec<&str> = scope.knobs.iter().map(|knob| knob.name.as_str()).collect();
    known.extend(KNOBS.iter().map(|knob| knob.name));
    match wanted.iter().find(|one| !known.contains(&one.knob.as_str())) {
        Some(one) => {
            known.dedup();
            Err(format!("--knob {}: this target has no such knob; it has {}", one.knob, known.join(", ")))
        }
        None => Ok(()),
    }
}

/// Whether a knob can matter to a workload.
fn matters(matters: Matters, workload: &Workload) -> bool {
    let buffered = !workload.buffering.is_direct();
    let reads = workload.op() != OpKind::Write;
    match matters {
        Matters::Always => true,
        Matters::BufferedReads => buffered && reads,
        Matters::BufferedWrites => buffered && workload.writes(),
        Matters::Buffered => buffered,
        Matters::Writes => workload.writes(),
        Matters::Direct => !buffered,
    }
}

/// Why a knob does not matter.
fn matters_words(matters: Matters) -> &'static str {
    match matters {
        Matters::Always => "it matters to no workload",
        Matters::BufferedReads => "it matters to reads through the file-system cache alone",
        Matters::BufferedWrites => "it matters to writes through the file-system cache alone",
        Matters::Buffered => "it matters to requests through the file-system cache alone",
        Matters::Writes => "it matters to writes alone",
        Matters::Direct => "it matters to requests past the file-system cache alone",
    }
}
