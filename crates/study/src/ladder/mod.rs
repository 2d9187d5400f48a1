//! The ladder: every stage from the program down, advertised over achieved.
//!
//! What a stage achieved is measured where the stage can be reached alone (generator, memory, page cache, file system). Of a part that counts its own busy
//! time it is the rate of the peak over the share of the time in which the part worked: what it gives while it works. Of any other layer it is what passed
//! through it at the peak: it gives that at least, and no more where it is the limit.

mod rates;
mod told;

use crate::found::Found;
use machine::{Layer, LayerKind, MachineFacts, ResourceKind};
use results::{Answer, Bottleneck, Experiment, Ladder, LimitOf, Stage, StageKind, StageRate};
use workload::OpKind;

/// The ladder of a study.
pub(crate) fn ladder(found: &Found<'_>, experiments: &[Experiment], answer: &Answer, machine: &MachineFacts) -> Ladder {
    let rungs = Rungs { found, experiments, answer, machine };
    let mut stages = rungs.above();
    stages.extend(rungs.below());
    mark_narrowest(&mut stages, answer);
    Ladder { stages, risks: told::risks(&found.setting.facts.layers) }
}

/// What is needed to make stages.
struct Rungs<'a> {
    found: &'a Found<'a>,
    experiments: &'a [Experiment],
    answer: &'a Answer,
    machine: &'a MachineFacts,
}

impl Rungs<'_> {
    fn stage(&self, kind: StageKind, name: impl Into<String>, rate: impl Fn(OpKind) -> Option<StageRate>) -> Stage {
        let rates = self.found.setting.ops().into_iter().filter_map(rate).collect();
        Stage { kind, name: name.into(), rates, settings: Vec::new(), warnings: Vec::new() }
    }

    /// What can be reached alone: from the program to the direct rate.
    fn above(&self) -> Vec<Stage> {
        let facts = &self.found.setting.facts;
        let mut stages = vec![self.stage(StageKind::Generator, "halfpower", |op| self.generator(op))];
        // Time is virtual on a simulated machine: the generator takes none, and has no rate.
        stages.retain(|stage| !self.machine.simulated || !stage.rates.is_empty());
        if self.machine.simulated {
            let name = self.machine.processor.clone();
            stages.push(
                self.stage(StageKind::Processor, name, |op| self.by_busy_time(op, &[ResourceKind::Processor], None)),
            );
        }
        stages.push(self.stage(StageKind::Memory, "copy", |op| self.memory(op)));
        stages.push(self.stage(StageKind::PageCache, "warm", |op| self.page_cache(op)));
        let system = facts.layers.iter().find(|layer| layer.kind == LayerKind::FileSystem);
        let name = system.map_or_else(|| facts.name.clone(), |layer| layer.name.clone());
        let mut own = Vec::new();
        if !facts.in_memory {
            own.push(self.stage(StageKind::Buffered, name.clone(), |op| self.buffered(op)));
        }
        if facts.direct || facts.in_memory {
            own.push(self.stage(StageKind::Direct, name, |op| self.direct(op)));
        }
        // Both are the file system; its settings stand once.
        if let (Some(first), Some(system)) = (own.first_mut(), system) {
            first.settings = told::settings(system);
            first.warnings = told::warnings_about(system, &facts.warnings);
        }
        stages.extend(own);
        stages
    }

    /// The layers that the target's facts name, without the file system that the program sees, which is above.
    fn below(&self) -> Vec<Stage> {
        let facts = &self.found.setting.facts;
        let layers = &facts.layers;
        let own = layers.iter().position(|layer| layer.kind == LayerKind::FileSystem);
        let below = layers.iter().enumerate().filter(|(at, _)| Some(*at) != own);
        let stage = |(_, layer): (usize, &Layer)| Stage {
            settings: told::settings(layer),
            warnings: told::warnings_about(layer, &facts.warnings),
            ..self.stage(layer.kind.into(), layer.name.clone(), |op| self.layer(layer, op))
        };
        below.map(stage).collect()
    }
}

/// Marks the stage that the verdict on the peak names.
fn mark_narrowest(stages: &mut [Stage], answer: &Answer) {
    for limit in answer.limits.iter().filter(|limit| limit.of == LimitOf::Peak) {
        let kinds: &[StageKind] = match limit.what {
            Bottleneck::Media | Bottleneck::Device | Bottleneck::DeviceIops => {
                &[StageKind::Device, StageKind::Loop, StageKind::Volume]
            }
            Bottleneck::Bus => &[StageKind::Bus],
            Bottleneck::Pci => &[StageKind::Pci],
            Bottleneck::Link => &[StageKind::Link, StageKind::Device],
            Bottleneck::Adapter => &[StageKind::Adapter, StageKind::Link],
            Bottleneck::Throttle => &[StageKind::Throttle, StageKind::Device],
            Bottleneck::Network => &[StageKind::Network],
            // Past the page cache if it can be passed: peaks are.
            Bottleneck::FileSystem => &[StageKind::Direct, StageKind::Buffered, StageKind::FileSystem],
            Bottleneck::Thread | Bottleneck::Generator => &[StageKind::Generator],
            Bottleneck::Processor => &[StageKind::Processor, StageKind::Generator],
            Bottleneck::Memory => &[StageKind::Memory],
            _ => &[],
        };
        let narrowest = kinds.iter().find_map(|kind| {
            let of_kind = stages.iter().enumerate().filter(|(_, stage)| stage.kind == *kind);
            let promised = |stage: &Stage| {
                let own = stage.rates.iter().find(|one| one.op == limit.op)?;
                Some(own.advertised.as_ref().map_or(f64::MAX, |one| one.throughput_bytes_per_s))
            };
            // What has no rate at all comes last: it is marked where nothing of its kind has one.
            let ranked = of_kind.map(|(at, stage)| (at, promised(stage).unwrap_or(f64::INFINITY)));
            ranked.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
        });
        let Some(stage) = narrowest.map(|at| &mut stages[at]) else { continue };
        let place = stage.rates.iter().position(|one| one.op == limit.op).unwrap_or_else(|| {
            stage.rates.push(rates::rate(limit.op, None, None));
            stage.rates.len() - 1
        });
        let marked = &mut stage.rates[place];
        marked.narrowest = true;
        // What limits the whole gives no more than that.
        marked.achieved.iter_mut().for_each(|reached| reached.at_least = false);
    }
}
