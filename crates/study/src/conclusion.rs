use crate::found::{ENOUGH, Reading, smallest};
use crate::sentences::size;
use machine::MemoryUse;
use results::{CostModel, Figure, Goal, HalfPower, ServiceModel};

#[derive(Debug, Default)]
pub(crate) struct Conclusion {
    pub(crate) sentences: Vec<String>,
    pub(crate) half_power: Vec<HalfPower>,
    pub(crate) costs: Vec<CostModel>,
    pub(crate) service_times: Vec<ServiceModel>,
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) memory: Vec<MemoryUse>,
}

/// The best of each kind ranks above the second of any kind: three sizes are one piece of advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Plain,
    Size,
    Depth,
    Completions,
    Cache,
    Durability,
    Mechanism,
    Allocation,
    Alignment,
    Chunk,
    ClientFiles,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comparison {
    pub(crate) change: Change,
    pub(crate) before: usize,
    pub(crate) after: usize,
    pub(crate) title: String,
    pub(crate) setting: String,
    pub(crate) reaches: Option<Goal>,
}

impl Comparison {
    pub(crate) fn new(
        change: Change,
        before: Reading,
        after: Reading,
        title: impl Into<String>,
        setting: impl Into<String>,
    ) -> Comparison {
        let (title, setting) = (title.into(), setting.into());
        Comparison {
            change,
            before: before.point,
            after: after.point,
            title,
            setting,
            reaches: None,
        }
    }

    pub(crate) fn reaching(self, goal: Goal) -> Comparison {
        Comparison { reaches: Some(goal), ..self }
    }

    pub(crate) fn of_sizes(curve: &[Reading], verb: &str) -> Option<Comparison> {
        let small = curve.iter().find(|reading| reading.x == 4096.0)?;
        let good = smallest(curve, ENOUGH)?;
        let size = size(good.x);
        let title = format!("{verb} in requests of {size}, not 4 KiB");
        (good.x > small.x).then(|| {
            Comparison::new(Change::Size, *small, good, title, format!("request size {size}"))
        })
    }

    pub(crate) fn of_depths(
        curve: &[Reading],
        title: impl Fn(f64) -> String,
    ) -> Option<Comparison> {
        let (one, good) = (curve.first()?, smallest(curve, ENOUGH)?);
        let setting = format!("{} requests outstanding", good.x);
        (good.x > one.x).then(|| Comparison::new(Change::Depth, *one, good, title(good.x), setting))
    }
}
