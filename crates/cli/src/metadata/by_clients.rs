//! Operations on files by several clients.

use super::{Arguments, phases, show};
use crate::clients;
use crate::context::Context;
use crate::failure::Failure;
use dialect::metadata::Measured;
use dialect::tasks::Crew;
#[cfg(feature = "mpi")]
use host::Host;
use machine::Nanos;
#[cfg(feature = "mpi")]
use results::{Began, Clients, Kind};
use results::{Client, MetadataResult, Results};
use std::path::Path;
use std::time::{Duration, Instant};
use workload::metadata::MetadataPlan;

/// A short first run shows how many files fit into the time.
const FIRST_FILES: u32 = 50;

const SIMULATED_FILES: u32 = 500;

const SMALL_FILE_BYTES: u32 = 4096;

/// Three levels, with five directories below each.
const TREE: (u32, u32) = (31, 5);

fn plans_of_study(directory: &Path) -> [MetadataPlan; 4] {
    let own = MetadataPlan { location: directory.to_owned(), ..MetadataPlan::default() };
    let shared = MetadataPlan { directories: 1, shared_directory: true, shift: 1, ..own.clone() };
    let small = MetadataPlan { file_bytes: SMALL_FILE_BYTES, shift: 1, ..own.clone() };
    let (directories, branch) = TREE;
    let tree = MetadataPlan { directories, branch, ..own.clone() };
    [own, shared, tree, small]
}

/// The minimum for an interval.
const MIN_ROUNDS: u32 = 2;

struct FirstRound {
    phases_ns: Nanos,
    /// Includes the agreement on each start.
    elapsed_ns: Nanos,
}

impl FirstRound {
    fn fit(&self, plan: MetadataPlan, counts: usize, time_ns: Nanos) -> MetadataPlan {
        let agreement_ns = self.elapsed_ns.saturating_sub(self.phases_ns);
        let of_rounds = |rounds: u32| u64::from(rounds) * counts as u64;
        let fits = |rounds: &u32| agreement_ns * of_rounds(*rounds) <= time_ns / 2;
        let rounds = (MIN_ROUNDS..=plan.rounds).rev().find(fits).unwrap_or(MIN_ROUNDS);
        let left_ns = time_ns.saturating_sub(agreement_ns * of_rounds(rounds));
        let times = left_ns / (self.phases_ns * of_rounds(rounds)).max(1);
        let (min, max) = (u64::from(FIRST_FILES), u64::from(plan.files));
        let files = (min * times).clamp(min, max) as u32;
        MetadataPlan { rounds, files, ..plan }
    }
}

/// `time_ns` is `None` on a simulated machine, whose rounds do not differ. A failure only warns:
/// the study is complete without these rates.
pub(crate) fn add_to_study(
    context: &Context,
    (directory, time_ns): (&Path, Option<Nanos>),
    crew: &mut dyn Crew,
    ranks: &[Client],
    study: &mut Results,
) {
    let order = hosts::joining_order(ranks);
    let counts = clients::Clients::Powers.of(ranks.len()).unwrap_or_default();
    let began = Instant::now();
    let plans = plans_of_study(directory);
    let plans_left = (1..=plans.len() as u32).rev();
    for (plan, plans_left) in plans.into_iter().zip(plans_left) {
        let passed = began.elapsed();
        let until = time_ns
            .map(|all| passed + Duration::from_nanos(all).saturating_sub(passed) / plans_left);
        let mut run = |plan: &MetadataPlan, counts: &[usize]| {
            with_progress(context, crew, plan, (counts, &order), "files, ")
        };
        let measured = match until {
            None => run(&MetadataPlan { files: SIMULATED_FILES, rounds: 1, ..plan }, &counts),
            Some(until) => {
                let first = MetadataPlan { files: FIRST_FILES, rounds: 1, ..plan.clone() };
                let first_began = Instant::now();
                run(&first, &[ranks.len()]).and_then(|first| {
                    let phases = first.results.iter().flat_map(|one| &one.operations);
                    let first = FirstRound {
                        phases_ns: phases.flat_map(|one| &one.elapsed_ns).sum(),
                        elapsed_ns: first_began.elapsed().as_nanos() as u64,
                    };
                    let left_ns = until.saturating_sub(began.elapsed()).as_nanos() as u64;
                    run(&first.fit(plan, counts.len(), left_ns), &counts)
                })
            }
        };
        let ended = match &measured {
            Ok(measured) => {
                add(measured, &order, ranks, study);
                measured.ended.is_some()
            }
            Err(error) => {
                study.warnings.push(format!("operations on files failed: {error}"));
                true
            }
        };
        if ended {
            return;
        }
    }
}

fn add(measured: &Measured, order: &[usize], ranks: &[Client], document: &mut Results) {
    let results = &measured.results;
    document.rates.extend(results.iter().flat_map(MetadataResult::operation_rates));
    let joined: Vec<Client> = order.iter().map(|&rank| ranks[rank].clone()).collect();
    document.operation_scaling.extend(hosts::operation_scalings(results, &joined));
    // A warning that holds for several numbers of clients is given once.
    let mut warnings: Vec<(&String, Vec<String>)> = Vec::new();
    for (warning, one) in results.iter().flat_map(|one| one.warnings.iter().map(move |w| (w, one)))
    {
        let clients = one.clients.to_string();
        match warnings.iter_mut().find(|known| known.0 == warning) {
            Some((_, numbers)) => numbers.push(clients),
            None => warnings.push((warning, vec![clients])),
        }
    }
    let files = results.first().map_or(String::new(), |one| one.plan.files_in_words());
    let what = if files.is_empty() { "files".into() } else { format!("files ({files})") };
    document.warnings.extend(warnings.iter().map(|(warning, numbers)| {
        let s = if numbers == &["1"] { "" } else { "s" };
        format!("{what} with {} client{s}: {warning}", numbers.join(", "))
    }));
    if let Some(error) = &measured.ended {
        document.warnings.push(format!("operations on files ended early: {error}"));
    }
}

#[derive(serde::Serialize)]
struct ByClients<'a> {
    results: &'a [MetadataResult],
}

#[cfg(feature = "mpi")]
pub(crate) fn by_clients(
    context: &Context,
    arguments: &Arguments,
    crew: &mut dyn Crew,
    clients: &Clients,
) -> Result<(), Failure> {
    let plan = super::plan(arguments)?;
    let counts = counts(arguments, clients.ranks.len())?;
    let host = Host::new(crate::interrupt::flag());
    let began = Began::now(&host);
    crate::target::no_twin(&plan.location)?;
    let target = crate::tasks::target_of(std::slice::from_ref(&plan.location))?;
    super::prepare(context, arguments, &plan, counts.iter().sum::<usize>() as u64)?;
    let measured = measure(context, crew, &plan, (&counts, &clients.ranks))?;
    let program = crate::context::program();
    let mut document = Results::new(&host, Kind::Metadata, program, began, target, plan.seed);
    document.clients = Some(clients.clone());
    document.warnings.extend(hosts::shared_hosts(&clients.ranks));
    finish(context, arguments, document, (measured, &clients.ranks))
}

pub(super) fn counts(arguments: &Arguments, all: usize) -> Result<Vec<usize>, Failure> {
    match &arguments.clients {
        Some(clients) => clients.of(all).map_err(Failure::Usage),
        None => Ok(vec![all]),
    }
}

pub(super) fn measure(
    context: &Context,
    crew: &mut dyn Crew,
    plan: &MetadataPlan,
    (counts, ranks): (&[usize], &[Client]),
) -> Result<Measured, Failure> {
    Ok(with_progress(context, crew, plan, (counts, &hosts::joining_order(ranks)), "")?)
}

fn with_progress(
    context: &Context,
    crew: &mut dyn Crew,
    plan: &MetadataPlan,
    (counts, order): (&[usize], &[usize]),
    what: &str,
) -> Result<Measured, dialect::tasks::Error> {
    let bar = context.console.bar(phases(plan) * counts.len() as u64);
    let mut done = 0;
    let measured =
        dialect::metadata::run(crew, plan, counts, order, &mut |count, round, operation| {
            let (round, rounds) = (round + 1, plan.rounds);
            let words = format!("{what}clients {count}, round {round} of {rounds}: ");
            bar.set_message(words + operation.name());
            bar.set_position(done);
            done += 1;
        });
    bar.finish_and_clear();
    measured
}

pub(super) fn finish(
    context: &Context,
    arguments: &Arguments,
    mut document: Results,
    (measured, ranks): (Measured, &[Client]),
) -> Result<(), Failure> {
    add(&measured, &hosts::joining_order(ranks), ranks, &mut document);
    document.incomplete = measured.ended.is_some();
    let own = ByClients { results: &measured.results };
    show(context, arguments.json, &document, ("metadata_by_clients", &own), || {
        report::terminal::metadata_by_clients(&measured.results, &document)
    })?;
    measured.ended.map_or(Ok(()), |error| Err(error.into()))
}
