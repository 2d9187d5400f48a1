//! Each trial is interleaved with the current setting; then the improvements run together.

use crate::document::{KeepLine, Outcome, Resized, TUNE_SCHEMA, Tried, Tuning};
use crate::knobs::{KNOBS, Scene};
use crate::plan::{Change, Plan, Trial, Whole};
use crate::prove::{Target, prove};
use crate::sentences::sentences;
use machine::{Error, Nanos, Result, Warning};
use measure::turns::{self, Answer, Arms, Stop, Turns, in_turn};
use measure::{RatePhase, Sample, course_of_runs};
use results::compare::{
    Comparison, Difference, InTurn, Measurement, RUN_MEASURES, Series, run_measures,
};
use results::{Program, RateChange};
use workload::Workload;

/// Of the time.
const FOR_COMBINATION: f64 = 0.2;

pub trait Subject {
    /// Nanoseconds from an arbitrary start.
    fn now(&self) -> Nanos;

    /// Sets knobs by number; all others get their own values back.
    ///
    /// # Errors
    /// A refused value, which cannot be tried.
    fn set(&mut self, settings: &[(usize, &str)]) -> Result<()>;

    /// Runs a workload once; earlier runs in `before` give the warm-up time.
    fn run(&mut self, workload: &Workload, before: &[Sample]) -> Result<Sample>;

    /// Runs work with its own requests. Returns its rate in place of the throughput, and the other
    /// [`RUN_MEASURES`]; NaN for missing ones. Fails if there is no such work.
    fn run_whole(&mut self) -> Result<[f64; RUN_MEASURES.len()]> {
        Err(Error::Unsupported("only requests of one file are run here".into()))
    }

    /// At each block's start, with the time passed.
    fn on_block(&mut self, what: &str, passed_ns: Nanos);
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// A question is decided once any larger change is ruled out.
    pub until_percent: f64,
    /// Smaller changes count as no difference.
    pub worth_percent: f64,
    /// Values that cannot gain this much are dropped; `None` also measures how much slower they
    /// are.
    pub gain_wanted_percent: Option<f64>,
    pub budget_ns: Nanos,
    pub noisy: bool,
    pub seed: u64,
}

struct Question {
    label: String,
    settings: Vec<(usize, String)>,
    workloads: [Workload; 2],
}

struct Trying<'a, S> {
    subject: &'a mut S,
    questions: &'a [Question],
    is_whole: bool,
    /// With the longest warm-up, per question and arm.
    slowest: Vec<[Option<Sample>; 2]>,
    /// Runs with the current setting by question, and the bytes that they moved.
    as_it_is: Vec<(Vec<RatePhase>, u64)>,
    before_ns: Nanos,
    warnings: &'a mut Vec<Warning>,
}

impl<S: Subject> Arms<{ RUN_MEASURES.len() }> for Trying<'_, S> {
    type Error = Error;

    fn now(&self) -> Nanos {
        self.subject.now()
    }

    fn run(
        &mut self,
        arm: usize,
        question: usize,
    ) -> std::result::Result<[f64; RUN_MEASURES.len()], Stop<Error>> {
        let stop = |error: Error| match error {
            Error::Interrupted => Stop::Interrupted(error),
            error => Stop::Question(error.to_string()),
        };
        let asked = &self.questions[question];
        let settings: Vec<(usize, &str)> = match arm {
            0 => Vec::new(),
            _ => asked.settings.iter().map(|(knob, value)| (*knob, value.as_str())).collect(),
        };
        self.subject.set(&settings).map_err(stop)?;
        if self.is_whole {
            return self.subject.run_whole().map_err(stop);
        }
        let slowest = &mut self.slowest[question][arm];
        let sample = self.subject.run(&asked.workloads[arm], slowest.as_slice()).map_err(stop)?;
        let all = self.warnings.iter().chain(&sample.usage.warnings);
        *self.warnings = Warning::merged(all).into_iter().map(|(one, _)| one).collect();
        let values = run_measures(&sample);
        if arm == 0 {
            let (runs, moved) = &mut self.as_it_is[question];
            runs.push(RatePhase {
                from_ns: sample.usage.since_start_ns,
                after_bytes: *moved,
                iops: sample.iops(),
            });
            *moved += sample.bytes_with_ramp;
        }
        if slowest.as_ref().is_none_or(|other| sample.warm_up_ns > other.warm_up_ns) {
            *slowest = Some(sample);
        }
        Ok(values)
    }

    fn on_block(&mut self, question: usize, block: usize, passed_ns: Nanos) {
        let label = format!("{}, block {block}", self.questions[question].label);
        self.subject.on_block(&label, self.before_ns.saturating_add(passed_ns));
    }
}

impl<S> Trying<'_, S> {
    /// Warns if the current setting did not keep its rate.
    fn changes(&self) -> Vec<Warning> {
        let of = |(question, (runs, _)): (&Question, &(Vec<RatePhase>, u64))| {
            let course = course_of_runs(runs, 0.0, |run| runs[run])?;
            let bytes = f64::from(question.workloads[0].request_bytes);
            let label = format!("{}, as it is: ", question.label);
            Some(Warning::from(label).then(RateChange::of(&course, bytes).warning()))
        };
        let ran =
            self.questions.iter().zip(&self.as_it_is).filter(|(_, (runs, _))| !runs.is_empty());
        ran.filter_map(of).collect()
    }
}

const INTERRUPTED: &str = "interrupted: the improvements were not tried together";

impl Tuning {
    /// A dry run.
    pub fn planned(plan: &Plan, target: &Target, limits: Limits, program: Program) -> Tuning {
        Tuning {
            schema: TUNE_SCHEMA.into(),
            program,
            target: target.name(),
            workloads: match &plan.whole {
                Some(whole) => vec![whole.words()],
                None => plan.questions.iter().map(Workload::options).collect(),
            },
            plan: plan.steps(),
            left_out: plan.left_out.clone(),
            budget_ns: limits.budget_ns,
            min_ns: plan.min_ns(limits.noisy),
            until_percent: limits.until_percent,
            worth_percent: limits.worth_percent,
            took_ns: None,
            tried: Vec::new(),
            combination: None,
            keep: Vec::new(),
            prove: Vec::new(),
            sentences: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// Tries each change, then the improvements together. Knobs keep the last values: the caller
/// restores them.
///
/// # Errors
/// Only an interrupt before any conclusion.
pub fn tune<S: Subject>(
    subject: &mut S,
    plan: &Plan,
    scene: &Scene<'_>,
    target: &Target,
    limits: Limits,
    program: Program,
) -> Result<Tuning> {
    let began = subject.now();
    let mut tuning = Tuning::planned(plan, target, limits, program);
    let alone: Vec<Vec<&Trial>> = plan.trials.iter().map(|trial| vec![trial]).collect();
    let for_trials = (limits.budget_ns as f64 * (1.0 - FOR_COMBINATION)) as Nanos;
    let first = Limits { budget_ns: for_trials, ..limits };
    let mut warnings = Vec::new();
    let (tried, interrupted) = ask(subject, plan, scene, &alone, first, began, &mut warnings)?;
    tuning.tried = tried;
    let chosen = together(plan, &tuning.tried);
    if interrupted {
        warnings.push(INTERRUPTED.into());
    } else if !chosen.is_empty() {
        let passed = subject.now().saturating_sub(began);
        let left = limits
            .budget_ns
            .saturating_sub(passed)
            .max((limits.budget_ns as f64 * FOR_COMBINATION) as Nanos);
        // Before a change is kept, any loss on a workload must be known.
        let again = Limits {
            budget_ns: left,
            seed: limits.seed.wrapping_add(1),
            gain_wanted_percent: None,
            ..limits
        };
        let all = std::slice::from_ref(&chosen);
        match ask(subject, plan, scene, all, again, began, &mut warnings) {
            Ok((mut tried, _)) => tuning.combination = tried.pop(),
            Err(Error::Interrupted) => warnings.push(INTERRUPTED.into()),
            Err(error) => return Err(error),
        }
    }
    if let Some(combination) = &tuning.combination
        && combination.outcome == Outcome::Helps
    {
        tuning.keep = combination.keep.clone();
        tuning.prove = prove(plan, scene, target, &chosen);
    }
    tuning.warnings = warnings.iter().map(Warning::to_string).collect();
    tuning.took_ns = Some(subject.now().saturating_sub(began));
    tuning.sentences = sentences(&tuning);
    Ok(tuning)
}

fn ask<S: Subject>(
    subject: &mut S,
    plan: &Plan,
    scene: &Scene<'_>,
    sets: &[Vec<&Trial>],
    limits: Limits,
    began: Nanos,
    warnings: &mut Vec<Warning>,
) -> Result<(Vec<Tried>, bool)> {
    let mut questions = Vec::new();
    let mut of_set: Vec<(usize, usize)> = Vec::new();
    for (set, trials) in sets.iter().enumerate() {
        for (number, workload) in plan.questions.iter().enumerate() {
            if trials.iter().any(|trial| trial.questions.contains(&number)) {
                questions.push(Question::new(workload, trials, scene, plan.whole.as_ref()));
                of_set.push((set, number));
            }
        }
    }
    let turns_limits = turns::Limits {
        until: limits.until_percent / 100.0,
        budget_ns: limits.budget_ns,
        max_blocks: usize::MAX,
        gain_wanted: limits.gain_wanted_percent.map(|percent| percent / 100.0),
        noisy: limits.noisy,
        seed: limits.seed,
    };
    let before_ns = subject.now().saturating_sub(began);
    let slowest = questions.iter().map(|_| [None, None]).collect();
    let as_it_is = questions.iter().map(|_| (Vec::new(), 0)).collect();
    let mut trying = Trying {
        subject,
        questions: &questions,
        is_whole: plan.whole.is_some(),
        slowest,
        as_it_is,
        before_ns,
        warnings,
    };
    let turns = in_turn(&mut trying, questions.len(), turns_limits)?;
    let changes = trying.changes();
    warnings.extend(changes);
    let differences = differences(&questions, plan.whole.as_ref(), &turns, limits);
    let tried = sets.iter().enumerate().map(|(set, trials)| {
        let own: Vec<usize> = (0..of_set.len()).filter(|&index| of_set[index].0 == set).collect();
        let judged = Judged { questions: &questions, turns: &turns, differences: &differences };
        tried(trials, &own, &judged, limits.until_percent)
    });
    Ok((tried.collect(), turns.interrupted))
}

impl Question {
    fn new(
        workload: &Workload,
        trials: &[&Trial],
        scene: &Scene<'_>,
        whole: Option<&Whole>,
    ) -> Question {
        let label: Vec<String> =
            trials.iter().map(|trial| format!("{}={}", trial.knob, trial.to.value)).collect();
        let setting = |trial: &&Trial| match trial.change {
            Change::Machine(knob) => Some((knob, trial.to.value.clone())),
            Change::Workload(_) => None,
        };
        Question {
            label: format!(
                "{}: {}",
                label.join(", "),
                whole.map_or_else(|| workload.short(), |whole| whole.name.clone())
            ),
            settings: trials.iter().filter_map(setting).collect(),
            workloads: [workload.clone(), changed(workload, trials, scene)],
        }
    }
}

impl Question {
    fn resized(&self) -> Option<Resized> {
        let [from, to] = &self.workloads;
        (from.request_bytes != to.request_bytes).then(|| Resized {
            question: from.options(),
            from_bytes: from.request_bytes,
            to_bytes: to.request_bytes,
        })
    }
}

pub(crate) fn changed(workload: &Workload, trials: &[&Trial], scene: &Scene<'_>) -> Workload {
    trials.iter().fold(workload.clone(), |workload, trial| match trial.change {
        Change::Workload(knob) => {
            (KNOBS[knob].with)(&workload, &trial.to.value, scene).unwrap_or(workload)
        }
        Change::Machine(_) => workload,
    })
}

fn differences(
    questions: &[Question],
    whole: Option<&Whole>,
    turns: &Turns<{ RUN_MEASURES.len() }>,
    limits: Limits,
) -> Vec<(usize, Difference)> {
    // The number distinguishes equal labels.
    let names: Vec<String> = (0..questions.len()).map(|index| index.to_string()).collect();
    let mut series = Vec::new();
    for (index, answer) in
        turns.answers.iter().enumerate().filter(|(_, answer)| !answer.blocks.is_empty())
    {
        for (place, measure) in RUN_MEASURES.into_iter().enumerate() {
            let measure = whole.filter(|_| place == 0).map_or(measure, |whole| whole.rate);
            let side = |arm: usize| -> Vec<[f64; 2]> {
                answer.blocks.iter().map(|block| block[arm][place]).collect()
            };
            let (a, b) = (side(0), side(1));
            if !a.iter().chain(&b).flatten().all(|value| value.is_finite()) {
                continue;
            }
            let asked = Measurement {
                question: names[index].clone(),
                label: questions[index].label.clone(),
                ..Measurement::default()
            };
            series.push(Series { asked, measure, a, b, exact: !limits.noisy });
        }
    }
    let blocks = turns.answers.iter().map(|answer| answer.blocks.len()).max().unwrap_or(0) as u32;
    let turns = InTurn {
        a: "as it is",
        b: "changed",
        blocks,
        worth_percent: limits.worth_percent,
        series: &series,
        failed: Vec::new(),
        warnings: Vec::new(),
    };
    let judged = Comparison::in_turn(
        turns,
        Program { name: String::new(), version: String::new(), arguments: Vec::new() },
    );
    let numbered = |one: Difference| {
        let index = names.iter().position(|name| *name == one.question)?;
        if let Some(whole) = whole {
            let requests = whole.latency_of.as_ref().filter(|_| !one.measure.is_rate());
            let of = requests.map(|requests| format!(", {requests}")).unwrap_or_default();
            let (question, label) = (whole.options.clone(), whole.name.clone() + &of);
            return Some((index, Difference { question, label, ..one }));
        }
        let [workload, _] = &questions[index].workloads;
        let (question, label) = (workload.options(), workload.short());
        Some((index, Difference { question, label, ..one }))
    };
    judged.differences.into_iter().filter_map(numbered).collect()
}

struct Judged<'a> {
    questions: &'a [Question],
    turns: &'a Turns<{ RUN_MEASURES.len() }>,
    differences: &'a [(usize, Difference)],
}

fn tried(trials: &[&Trial], own: &[usize], judged: &Judged<'_>, until_percent: f64) -> Tried {
    let Judged { questions, turns, differences } = judged;
    let answers: Vec<&Answer<_>> = own.iter().map(|&index| &turns.answers[index]).collect();
    let resized = own.iter().filter_map(|&index| questions[index].resized()).collect();
    let differences: Vec<Difference> = differences
        .iter()
        .filter(|(index, _)| own.contains(index))
        .map(|(_, one)| one.clone())
        .collect();
    let failed =
        answers.iter().find_map(|answer| answer.failed.as_ref()).map(|(_, why)| why.clone());
    let open = answers.iter().any(|answer| !answer.closed);
    // If a set failed on one workload, the others give no conclusion.
    let outcome = if failed.is_some() {
        Outcome::Failed
    } else {
        Tried::judge(&differences, open, until_percent)
    };
    let keep = trials.iter().flat_map(|trial| KeepLine::of(&trial.knob, &trial.to)).collect();
    let blocks = answers.iter().map(|answer| answer.blocks.len()).max().unwrap_or(0) as u32;
    let common = |knob: String, of: String, from: String, to: String| Tried {
        knob,
        of,
        from,
        to,
        outcome,
        blocks,
        differences,
        resized,
        failed,
        keep,
    };
    match trials {
        [one] => common(one.knob.clone(), one.of.clone(), one.from.clone(), one.to.value.clone()),
        several => {
            let say = |value: fn(&Trial) -> &String| {
                let each: Vec<String> = several
                    .iter()
                    .map(|trial| format!("{}={}", trial.knob, value(trial)))
                    .collect();
                each.join(", ")
            };
            common(
                "combination".into(),
                String::new(),
                say(|trial| &trial.from),
                say(|trial| &trial.to.value),
            )
        }
    }
}

/// The best value of each knob; of two knobs that reset one another, the better.
fn together<'a>(plan: &'a Plan, tried: &[Tried]) -> Vec<&'a Trial> {
    let mut helped: Vec<(f64, &Trial)> = plan
        .trials
        .iter()
        .zip(tried)
        .filter(|(_, tried)| tried.outcome == Outcome::Helps)
        .map(|(trial, tried)| (tried.gain(), trial))
        .collect();
    helped.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut chosen: Vec<&Trial> = Vec::new();
    for (_, trial) in helped {
        let clashes = |other: &&Trial| {
            (other.knob == trial.knob && other.of == trial.of)
                || other.resets.contains(&trial.knob)
                || trial.resets.contains(&other.knob)
        };
        if !chosen.iter().any(clashes) {
            chosen.push(trial);
        }
    }
    chosen
}
