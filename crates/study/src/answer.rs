//! Conclusions over all points of a study.

use crate::case::{Case, SAME};
use crate::command::Command;
use crate::conclusion::Conclusion;
use crate::confirm::BestRates;
use crate::experiments::{Trial, buffered};
use crate::figures;
use crate::findings::{findings, is_worth_a_word};
use crate::found::{Found, PeakRates, Reading, best};
use crate::roles::{self, PLAIN_BYTES};
use crate::sampler::{Entry, Sampler};
use crate::sustain::TOO_FAST;
use crate::{advice, checklist, doubts, ladder, models, verdict};
use machine::{Machine, MachineFacts, MemoryKind};
use results::{
    Answer, Experiment, Ladder, Lasting, LongWrites, Numbers, Peak, PeakDoubt, Point, RandomBurst,
    UncertainGain,
};
use std::collections::BTreeSet;
use workload::{OpKind, Pattern};

/// A peak with a larger relative half width is undecided.
const UNDECIDED: f64 = 0.1;

/// Up to this size each random request costs a rotating disk a seek.
const SMALL_RANDOM_BYTES: u32 = 8192;

pub(crate) fn answer(
    mut found: Found<'_>,
    trials: &[Trial],
    best: &BestRates<'_>,
    cases: &[Case],
    machine: &MachineFacts,
    command: &Command,
    noisy: bool,
) -> (Vec<Experiment>, Answer, Ladder) {
    let (facts, points) = (&found.setting.facts, found.points);
    let BestRates { peaks, bursts, random_bursts } = best;
    found.measured = PeakRates::measured(peaks, points);
    let peak = |&(op, point): &(OpKind, usize)| {
        let rate = found.measured.of(op)?;
        Some(Peak {
            op,
            throughput_bytes_per_s: rate.bytes_per_s,
            interval_95: rate.interval_95,
            point,
            settings: command.options(&found.entries[point]).join(" "),
            advertised: verdict::advertised(facts, op),
            burst: bursts.iter().find(|one| one.0 == op).map(|one| one.1),
        })
    };
    let peaks: Vec<Peak> = peaks.iter().filter_map(peak).collect();
    let advertised = |op: OpKind| {
        let peak = peaks.iter().find(|peak| peak.op == op)?;
        Some(peak.advertised.as_ref()?.throughput_bytes_per_s.into())
    };
    found.advertised =
        PeakRates { read: advertised(OpKind::Read), write: advertised(OpKind::Write) };
    let copy = found.memory_rate(MemoryKind::Copy);
    let limit = |case: &Case| {
        let peak = found.measured.of(case.op).map(|peak| peak.bytes_per_s);
        verdict::limit(case, found.entries, points, facts, machine, peak, copy)
    };
    let limits = cases.iter().map(limit).collect();
    let peak_doubts = peak_doubts(&found, &peaks, random_bursts, noisy);
    let mut answer = Answer {
        doubts: doubts(&found, &peaks, &peak_doubts),
        peak_doubts,
        plain: Vec::new(),
        limits,
        half_power: Vec::new(),
        costs: Vec::new(),
        service_times: Vec::new(),
        random_bursts: random_bursts.to_vec(),
        long_writes: found.long_writes.as_ref().ok().cloned(),
        findings: Vec::new(),
        predictions: Vec::new(),
        unproven: Vec::new(),
        uncertain_gains: Vec::new(),
        checklist: Vec::new(),
        left_out: Vec::new(),
        peaks,
    };
    let (mut experiments, mut comparisons) = (Vec::new(), Vec::new());
    for trial in trials {
        let conclusion = if trial.grid.skipped.is_some() {
            Conclusion::default()
        } else {
            (trial.experiment.conclude)(&found)
        };
        let sentence = sentence(trial, &conclusion);
        answer.half_power.extend(conclusion.half_power);
        answer.costs.extend(conclusion.costs);
        answer.service_times.extend(conclusion.service_times);
        comparisons.extend(conclusion.comparisons);
        let about = trial.experiment;
        let mut figures = figures::draw(trial, points);
        figures.extend(conclusion.figures);
        experiments.push(Experiment {
            id: about.id.into(),
            title: about.title.into(),
            question: about.question.into(),
            sentence,
            skipped: trial.grid.skipped.clone(),
            left_out: trial.grid.notes.clone(),
            figures,
            memory: conclusion.memory,
        });
    }
    for experiment in &mut experiments {
        models::share_half_power(&mut experiment.figures, &answer.half_power, points);
    }
    answer.plain = advice::plain_rates(&found);
    let advices = advice::advice(&found);
    // Do not repeat advice for a plain program in the experiment that shows it.
    comparisons.retain(|one| {
        !advices.iter().any(|advice| (advice.before, advice.after) == (one.before, one.after))
    });
    comparisons.extend(advices);
    let setting = found.setting;
    let is_plain = |entry: &Entry| {
        let op = entry.workload.op();
        PLAIN_BYTES.iter().any(|&bytes| roles::is_plain(entry, op, bytes, setting))
    };
    let of_changes = findings(&comparisons, found.entries, points, command, is_plain);
    answer.unproven = of_changes.unproven.iter().map(UncertainGain::to_string).collect();
    (answer.findings, answer.uncertain_gains) = (of_changes.proven, of_changes.unproven);
    answer.checklist = checklist::checklist(&found, &answer.limits);
    let ladder = ladder::ladder(&found, &experiments, &answer, machine);
    (experiments, answer, ladder)
}

/// Both points of each reportable change.
pub(crate) fn sides(found: &Found<'_>, trials: &[Trial]) -> Vec<usize> {
    let made = trials.iter().filter(|trial| trial.grid.skipped.is_none());
    let compared = made.flat_map(|trial| (trial.experiment.conclude)(found).comparisons);
    let worth =
        compared.chain(advice::advice(found)).filter(|one| is_worth_a_word(one, found.entries));
    let sides: BTreeSet<usize> = worth.flat_map(|one| [one.before, one.after]).collect();
    sides.into_iter().collect()
}

fn sentence(trial: &Trial, conclusion: &Conclusion) -> String {
    match &trial.grid.skipped {
        Some(reason) => format!("Skipped: {reason}."),
        None if conclusion.sentences.is_empty() => {
            "Too little could be measured to say anything.".into()
        }
        None => conclusion.sentences.join(" "),
    }
}

/// Most serious first.
fn doubts(found: &Found<'_>, peaks: &[Peak], of_peaks: &[PeakDoubt]) -> Vec<String> {
    let points = found.points;
    let mut doubts = found.setting.facts.warnings.clone();
    let warnings =
        |peak: &Peak| points[peak.point].numbers.iter().flat_map(|numbers| &numbers.doubts);
    let warned = peaks.iter().flat_map(|peak| warnings(peak).map(|warning| (peak.op, warning)));
    let new: Vec<_> =
        warned.filter(|(_, warning)| !doubts.contains(&warning.to_string())).collect();
    doubts.extend(doubts::of_peaks(new, points));
    doubts.extend(of_peaks.iter().map(PeakDoubt::to_string));
    // The doubt about a burst says the same with the length of a rested one.
    let burst = peaks.iter().any(|peak| peak.op == OpKind::Write && peak.burst.is_some());
    let fell = |one: &&LongWrites| one.lasting() != Lasting::AsFarAsSeen;
    let long = found.long_writes.as_ref().ok().filter(fell).filter(|_| !burst);
    doubts.extend(long.map(LongWrites::to_string));
    doubts
}

fn peak_doubts(
    found: &Found<'_>,
    peaks: &[Peak],
    random_bursts: &[RandomBurst],
    noisy: bool,
) -> Vec<PeakDoubt> {
    let points = found.points;
    let mut doubts: Vec<PeakDoubt> =
        peaks.iter().filter_map(|peak| changed_since(peak, found)).collect();
    // Without noise, an interval is not a reason for doubt: it shows how steady the one run was.
    let noisy_peaks = || peaks.iter().filter(|_| noisy);
    doubts.extend(noisy_peaks().filter_map(|peak| undecided(peak, points)));
    doubts.extend(peaks.iter().filter_map(above_advertised));
    doubts.extend(noisy_peaks().filter_map(|peak| buffered_is_faster(peak, found)));
    let is_write = |one: &RandomBurst| one.op == OpKind::Write;
    if !random_bursts.iter().any(is_write) {
        doubts.extend(cached_writes(found));
    }
    // The first of an operation is its best.
    for op in [OpKind::Read, OpKind::Write] {
        let first = random_bursts.iter().find(|one| one.op == op);
        doubts.extend(first.and_then(|one| random_burst(one, points)));
    }
    doubts.extend(peaks.iter().filter_map(|peak| {
        peak.burst.map(|burst| PeakDoubt::Burst {
            op: peak.op,
            burst_bytes_per_s: burst.throughput_bytes_per_s,
            length_s: burst.length_s,
            lasting_bytes_per_s: peak.throughput_bytes_per_s,
        })
    }));
    let (of, failed) = (points.len(), points.iter().filter(|point| point.error.is_some()).count());
    doubts.extend((failed > 0).then_some(PeakDoubt::Failed { failed, of }));
    let is_wide = |numbers: &Numbers| numbers.relative_half_width.is_none_or(|width| width > 0.25);
    let uncertain =
        points.iter().filter(|point| point.numbers.as_ref().is_some_and(is_wide)).count();
    doubts.extend((noisy && uncertain * 3 > of).then_some(PeakDoubt::Uncertain { uncertain, of }));
    doubts
}

fn random_burst(one: &RandomBurst, points: &[Point]) -> Option<PeakDoubt> {
    let lasting = &points[one.point];
    Some(PeakDoubt::RandomBurst {
        op: one.op,
        outstanding: one.outstanding,
        burst_iops: one.burst.throughput_bytes_per_s / f64::from(lasting.workload.request_bytes),
        length_s: one.burst.length_s,
        lasting_iops: lasting.numbers.as_ref()?.iops,
    })
}

/// On a rotating disk, random writes and random reads need the same seeks.
fn cached_writes(found: &Found<'_>) -> Option<PeakDoubt> {
    let best = |op| {
        let random = found.points.iter().filter(|point| {
            let workload = &point.workload;
            workload.op() == op
                && workload.pattern == Pattern::Random
                && workload.buffering.is_direct()
                && workload.request_bytes <= SMALL_RANDOM_BYTES
        });
        let rates = random.filter_map(|point| Some(point.numbers.as_ref()?.iops));
        rates.max_by(f64::total_cmp)
    };
    let (write_iops, read_iops) = (best(OpKind::Write)?, best(OpKind::Read)?);
    let cached = found.setting.facts.is_rotating() && write_iops > read_iops * TOO_FAST;
    cached.then_some(PeakDoubt::CachedWrites { write_iops, read_iops })
}

fn undecided(peak: &Peak, points: &[Point]) -> Option<PeakDoubt> {
    let width = points[peak.point].numbers.as_ref()?.relative_half_width?;
    (width > UNDECIDED).then_some(PeakDoubt::NotSettled { op: peak.op, percent: width * 100.0 })
}

fn above_advertised(peak: &Peak) -> Option<PeakDoubt> {
    let cap = peak.advertised.as_ref()?;
    let above = peak.throughput_bytes_per_s > cap.throughput_bytes_per_s * (1.0 + SAME);
    above.then(|| PeakDoubt::AboveAdvertised {
        op: peak.op,
        layer: cap.layer.clone(),
        throughput_bytes_per_s: peak.throughput_bytes_per_s,
        admits_bytes_per_s: cap.throughput_bytes_per_s,
    })
}

/// What comes through the page cache comes from the device, which was faster at that time.
fn buffered_is_faster(peak: &Peak, found: &Found<'_>) -> Option<PeakDoubt> {
    if found.setting.facts.in_memory {
        return None;
    }
    let curves = match peak.op {
        OpKind::Write => &[buffered::SYNCED][..],
        _ => &[buffered::COLD, buffered::HINTED],
    };
    let readings: Vec<Reading> = curves.iter().flat_map(|curve| found.curve(curve)).collect();
    let fastest = best(&readings)?;
    let ([low, _], [_, high]) = (fastest.interval_95?, peak.interval_95?);
    (low > high).then(|| PeakDoubt::FasterElsewhere {
        op: peak.op,
        point: fastest.point,
        throughput_bytes_per_s: fastest.y,
        workload: format!("buffered {}s", peak.op),
    })
}

/// The tables and the peak then describe two states of the target.
fn changed_since(peak: &Peak, found: &Found<'_>) -> Option<PeakDoubt> {
    let entry = &found.entries[peak.point];
    let now = found.points[peak.point].numbers.as_ref()?;
    let alike = found.entries.iter().zip(found.points).enumerate();
    let (point, earlier) = alike
        .filter(|(_, (other, _))| other.question == entry.question && other.shape == entry.shape)
        .filter_map(|(index, (_, point))| Some((index, point.numbers.as_ref()?)))
        .find(|(_, earlier)| entry.disagrees() && earlier.is_far_from(now))?;
    Some(PeakDoubt::Changed {
        op: peak.op,
        point,
        before_bytes_per_s: earlier.throughput_bytes_per_s,
        now_bytes_per_s: now.throughput_bytes_per_s,
    })
}

pub(crate) fn left_out<M: Machine>(sampler: &Sampler<'_, M>, trials: &[Trial]) -> Vec<String> {
    let mut said = Vec::new();
    for trial in trials {
        let cells = &trial.grid.cells;
        let missed = cells
            .iter()
            .filter_map(|cell| cell.point)
            .filter(|&point| !sampler.entries[point].reached());
        let missed = missed.count();
        if missed > 0 {
            let title = trial.experiment.title;
            said.push(format!(
                "{title}: {missed} of {} points were not reached in the time",
                cells.len()
            ));
        }
    }
    said.extend(sampler.left_out.iter().cloned());
    if sampler.too_long > 0 {
        said.push(format!(
            "{} points whose requests take longer than several runs",
            sampler.too_long
        ));
    }
    said
}

pub(crate) fn keep_reached<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    trials: &mut [Trial],
) -> Vec<Option<usize>> {
    let indices = sampler.drop_unreached();
    for cell in trials.iter_mut().flat_map(|trial| &mut trial.grid.cells) {
        cell.point = cell.point.and_then(|point| indices[point]);
    }
    indices
}
