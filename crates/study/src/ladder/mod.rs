//! A stage that counts its busy time is rated at the peak over its utilisation; one that cannot be
//! measured separately, at the rate that passed through it: a lower bound.

mod layer_facts;
mod rates;

use crate::found::Found;
use machine::{Layer, LayerKind, MachineFacts};
use results::{Answer, Bottleneck, Experiment, Ladder, LimitOf, Stage, StageKind, StageRate};
use workload::OpKind;

pub(crate) fn ladder(
    found: &Found<'_>,
    experiments: &[Experiment],
    answer: &Answer,
    machine: &MachineFacts,
) -> Ladder {
    let rungs = Rungs { found, experiments, answer, machine };
    let mut stages = rungs.above();
    stages.extend(rungs.below());
    mark_narrowest(&mut stages, answer);
    Ladder { stages, risks: layer_facts::risks(&found.setting.facts.layers) }
}

struct Rungs<'a> {
    found: &'a Found<'a>,
    experiments: &'a [Experiment],
    answer: &'a Answer,
    machine: &'a MachineFacts,
}

impl Rungs<'_> {
    fn stage(
        &self,
        kind: StageKind,
        name: impl Into<String>,
        rate: impl Fn(OpKind) -> Option<StageRate>,
    ) -> Stage {
        let rates = self.found.setting.ops().into_iter().filter_map(rate).collect();
        Stage { kind, name: name.into(), rates, settings: Vec::new(), warnings: Vec::new() }
    }

    /// These can be measured separately.
    fn above(&self) -> Vec<Stage> {
        let facts = &self.found.setting.facts;
        let mut stages =
            vec![self.stage(StageKind::Generator, "halfpower", |op| self.generator(op))];
        // On a simulated machine the generator takes no virtual time, so it has no rate.
        stages.retain(|stage| !self.machine.simulated || !stage.rates.is_empty());
        if self.machine.simulated {
            let name = self.machine.processor.clone();
            stages.push(self.stage(StageKind::Processor, name, |op| self.processor(op)));
        }
        stages.push(self.stage(StageKind::Memory, "copy", |op| self.memory(op)));
        stages.push(self.stage(StageKind::PageCache, "warm", |op| self.page_cache(op)));
        let system = own_file_system(&facts.layers).map(|at| &facts.layers[at]);
        let name = system.map_or_else(|| facts.name.clone(), |layer| layer.name.clone());
        let mut own = Vec::new();
        if !facts.in_memory {
            own.push(self.stage(StageKind::Buffered, name.clone(), |op| self.buffered(op)));
        }
        if facts.direct || facts.in_memory {
            own.push(self.stage(StageKind::Direct, name, |op| self.direct(op)));
        }
        // Both are the file system; list its settings once.
        if let (Some(first), Some(system)) = (own.first_mut(), system) {
            first.settings = layer_facts::settings(system);
            first.warnings = system.facts.warnings.clone();
        }
        stages.extend(own);
        stages
    }

    fn below(&self) -> Vec<Stage> {
        let facts = &self.found.setting.facts;
        let layers = &facts.layers;
        let own = own_file_system(layers);
        let below = layers.iter().enumerate().filter(|(at, _)| Some(*at) != own);
        let stage = |(_, layer): (usize, &Layer)| Stage {
            settings: layer_facts::settings(layer),
            warnings: layer.facts.warnings.clone(),
            ..self.stage(layer.kind.into(), layer.name.clone(), |op| self.layer(layer, op))
        };
        below.map(stage).collect()
    }
}

/// A file system below a device holds the files of loop devices.
fn own_file_system(layers: &[Layer]) -> Option<usize> {
    layers.first().is_some_and(|layer| layer.kind == LayerKind::FileSystem).then_some(0)
}

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
            // The direct rate if there is one, as peaks are direct.
            Bottleneck::FileSystem => {
                &[StageKind::Direct, StageKind::Buffered, StageKind::FileSystem]
            }
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
            // Stages without a rate come last: one is marked only if none of its kind has a rate.
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
        // The limiting stage cannot give more than that.
        marked.achieved.iter_mut().for_each(|reached| reached.at_least = false);
    }
}
