use crate::document::{LeftOut, Step};
use crate::knobs::{KNOBS, Scene, WorkloadKnob};
use machine::{Alternative, Buffering, Knob, Matters, Nanos};
use measure::stats::MIN_BLOCKS;
use results::compare::Measure;
use workload::{OpKind, Pattern, Stop, Workload};

/// A knob that the user named; without `values`, the table's are tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub knob: String,
    pub values: Vec<String>,
}

impl std::str::FromStr for Wanted {
    type Err = String;

    /// `NAME` or `NAME=VALUE,VALUE`.
    fn from_str(text: &str) -> Result<Wanted, String> {
        let (knob, values) = text.split_once('=').unwrap_or((text, ""));
        let values: Vec<String> = values
            .split(',')
            .map(str::trim)
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
            .collect();
        if knob.trim().is_empty() || (text.contains('=') && values.is_empty()) {
            return Err(format!("'{text}' is not a knob; write NAME, or NAME=VALUE,VALUE"));
        }
        Ok(Wanted { knob: knob.trim().into(), values })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Machine(usize),
    /// By its index in [`KNOBS`].
    Workload(usize),
}

/// One value of one knob, against the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    pub knob: String,
    /// The component that the knob configures.
    pub of: String,
    pub about: String,
    pub from: String,
    pub to: Alternative,
    pub change: Change,
    pub resets: Vec<String>,
    pub questions: Vec<usize>,
}

pub struct Scope<'a> {
    pub knobs: &'a [Knob],
    /// For a machine knob's value that the table does not offer.
    pub value: &'a dyn Fn(usize, &str) -> Alternative,
    pub scene: Scene<'a>,
}

/// A benchmark of many files, or a replayed application, with its own requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    pub name: String,
    /// For `halfpower compare`, such as `--postmark FILE`.
    pub options: String,
    /// After the target in an arm of `compare`; `None`: an arm is only a target.
    pub arm_options: Option<String>,
    /// Workloads with such requests; they decide which knobs matter.
    pub like: Vec<Workload>,
    pub many_files: bool,
    pub rate: Measure,
    /// The requests whose latencies it reports.
    pub latency_of: Option<String>,
}

impl Whole {
    /// Describes work on many files, like buffered random reads and writes.
    pub fn of_many_files(name: &str, options: String) -> Whole {
        let like = Workload {
            read_percent: 50,
            pattern: Pattern::Random,
            buffering: Buffering::Buffered,
            ..Workload::default()
        };
        Whole {
            name: name.into(),
            options,
            arm_options: None,
            like: vec![like],
            many_files: true,
            rate: Measure::Operations,
            latency_of: None,
        }
    }

    pub(crate) fn words(&self) -> String {
        let more = self.arm_options.as_ref().filter(|more| !more.is_empty());
        more.map_or_else(|| self.options.clone(), |more| format!("{} ({more})", self.options))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub questions: Vec<Workload>,
    /// Work that runs instead of the only question, which has such requests.
    pub whole: Option<Whole>,
    pub trials: Vec<Trial>,
    pub left_out: Vec<LeftOut>,
}

impl Plan {
    /// Plans every applicable knob that cannot lose data or, with `wanted`, only the named ones.
    ///
    pub fn new(
        questions: Vec<Workload>,
        scope: &Scope<'_>,
        wanted: &[Wanted],
    ) -> Result<Plan, String> {
        let mut plan = Plan { questions, whole: None, trials: Vec::new(), left_out: Vec::new() };
        check_names(scope, wanted)?;
        plan.machine_knobs(scope, wanted);
        for (number, knob) in KNOBS.iter().enumerate() {
            if let Some(named) = asked_for(knob.name, wanted) {
                plan.workload_knob(number, knob, named, scope);
            }
        }
        Ok(plan)
    }

    /// Plans machine knobs for work whose options or recording fix its requests.
    ///
    pub fn of_whole(whole: Whole, scope: &Scope<'_>, wanted: &[Wanted]) -> Result<Plan, String> {
        let questions = vec![whole.like.first().cloned().unwrap_or_default()];
        let whole = Some(whole);
        let mut plan = Plan { questions, whole, trials: Vec::new(), left_out: Vec::new() };
        check_names(scope, wanted)?;
        if let Some(one) = wanted.iter().find(|one| KNOBS.iter().any(|knob| knob.name == one.knob))
        {
            return Err(format!(
                "--knob {}: it belongs to requests of one file; name a knob of the machine",
                one.knob
            ));
        }
        plan.machine_knobs(scope, wanted);
        Ok(plan)
    }

    fn machine_knobs(&mut self, scope: &Scope<'_>, wanted: &[Wanted]) {
        for (number, knob) in scope.knobs.iter().enumerate() {
            if let Some(named) = asked_for(&knob.name, wanted) {
                self.machine_knob(number, knob, named, scope);
            }
        }
    }

    fn machine_knob(
        &mut self,
        number: usize,
        knob: &Knob,
        named: Option<&Wanted>,
        scope: &Scope<'_>,
    ) {
        let all: Vec<usize> = (0..self.questions.len()).collect();
        let touched: Vec<usize> = all
            .iter()
            .copied()
            .filter(|&index| match &self.whole {
                Some(whole) if knob.matters == Matters::SmallFiles => whole.many_files,
                Some(whole) => whole.like.iter().any(|one| matters(knob.matters, one)),
                None => matters(knob.matters, &self.questions[index]),
            })
            .collect();
        // An explicitly named knob is tried even if it cannot matter.
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
        let values: Vec<Alternative> =
            values.into_iter().filter(|to| to.value != knob.present).collect();
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

    fn workload_knob(
        &mut self,
        number: usize,
        knob: &WorkloadKnob,
        named: Option<&Wanted>,
        scope: &Scope<'_>,
    ) {
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
            let questions: Vec<usize> = (0..self.questions.len())
                .filter(|&index| differs(&self.questions[index]).is_some())
                .collect();
            if questions.is_empty() {
                // Explain why an explicitly named value is not tried.
                if named.is_some_and(|named| named.values.contains(&value)) {
                    let why = if present.contains(&value) {
                        "already set"
                    } else {
                        "not applicable to these workloads"
                    };
                    self.leave_out(knob.name, "the workload", format!("{value}: {why}"));
                }
                continue;
            }
            let risk =
                questions.iter().find_map(|&index| (knob.risk)(&self.questions[index], &value));
            let to = Alternative {
                risk,
                keep: (knob.keep)(&value, scene),
                value,
                ..Alternative::default()
            };
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
                let why =
                    format!("{}: {risk}; only --knob {} tries it", trial.to.value, trial.knob);
                self.leave_out(&trial.knob, &trial.of, why);
            }
            _ => self.trials.push(trial),
        }
    }

    fn leave_out(&mut self, knob: &str, of: &str, why: impl Into<String>) {
        self.left_out.push(LeftOut { knob: knob.into(), of: of.into(), why: why.into() });
    }

    pub fn asked(&self) -> usize {
        self.trials.iter().map(|trial| trial.questions.len()).sum()
    }

    /// Time of all minimum blocks; `None` if runs end after an amount of data or work.
    pub fn min_ns(&self, noisy: bool) -> Option<Nanos> {
        if self.whole.is_some() {
            return None;
        }
        let run = |index: &usize| match self.questions[*index].stop {
            Stop::AfterNs(ns) => Some(ns),
            Stop::AfterBytes(_) => None,
        };
        let blocks = if noisy { MIN_BLOCKS as u64 } else { 1 };
        let runs: Option<Nanos> =
            self.trials.iter().flat_map(|trial| &trial.questions).map(run).sum();
        Some(runs? * 4 * blocks)
    }

    /// For display and the document.
    pub fn steps(&self) -> Vec<Step> {
        self.trials.iter().map(Step::of).collect()
    }

    /// A machine knob's planned values, for the journal.
    pub fn values_of(&self, knob: usize) -> Vec<String> {
        let of = |trial: &&Trial| trial.change == Change::Machine(knob);
        self.trials.iter().filter(of).map(|trial| trial.to.value.clone()).collect()
    }
}

fn align(workload: &Workload, scene: &Scene<'_>) -> u32 {
    if workload.buffering.is_direct() && scene.facts.direct {
        scene.facts.direct_align_bytes
    } else {
        1
    }
}

/// `Some(None)` if all knobs are wanted.
fn asked_for<'a>(knob: &str, wanted: &'a [Wanted]) -> Option<Option<&'a Wanted>> {
    if wanted.is_empty() {
        Some(None)
    } else {
        wanted.iter().find(|one| one.knob == knob).map(Some)
    }
}

fn check_names(scope: &Scope<'_>, wanted: &[Wanted]) -> Result<(), String> {
    let mut known: Vec<&str> = scope.knobs.iter().map(|knob| knob.name.as_str()).collect();
    known.extend(KNOBS.iter().map(|knob| knob.name));
    match wanted.iter().find(|one| !known.contains(&one.knob.as_str())) {
        Some(one) => {
            known.dedup();
            Err(format!(
                "--knob {}: this target has no such knob; it has {}",
                one.knob,
                known.join(", ")
            ))
        }
        None => Ok(()),
    }
}

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
        Matters::SmallFiles => false,
    }
}

fn matters_words(matters: Matters) -> &'static str {
    match matters {
        Matters::Always => "affects no workload",
        Matters::BufferedReads => "affects only buffered reads",
        Matters::BufferedWrites => "affects only buffered writes",
        Matters::Buffered => "affects only buffered requests",
        Matters::Writes => "affects only writes",
        Matters::Direct => "affects only direct requests",
        Matters::SmallFiles => "affects only operations on many files (--postmark, --metadata)",
    }
}
