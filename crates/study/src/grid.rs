use crate::context::StudyContext;
use results::{Axis, CurveName};
use workload::{OpKind, Workload};

/// [`Rank::Core`] cells are in every study, [`Rank::Rich`] ones only in a full one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Core,
    Usual,
    Rich,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StripeShape {
    pub(crate) members: Vec<u32>,
    pub(crate) chunk: u64,
}

#[derive(Debug)]
pub(crate) struct CurveSet {
    pub(crate) x: Axis,
    pub(crate) half_power: bool,
    pub(crate) half_of_peak: bool,
    every_size: bool,
    /// Order of removal when time is short, 0 last.
    priority: u32,
    pub(crate) figures: &'static [FigureDesign],
}

impl CurveSet {
    pub(crate) const fn new(x: Axis, priority: u32, figures: &'static [FigureDesign]) -> CurveSet {
        CurveSet { x, half_power: false, half_of_peak: false, every_size: false, priority, figures }
    }

    pub(crate) const fn with_half_power(self) -> CurveSet {
        CurveSet { half_power: true, ..self }
    }

    pub(crate) const fn with_half_of_peak(self) -> CurveSet {
        CurveSet { half_of_peak: true, ..self.with_half_power() }
    }

    pub(crate) const fn with_every_size(self) -> CurveSet {
        CurveSet { every_size: true, ..self }
    }
}

#[derive(Debug)]
pub(crate) struct FigureDesign {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) y: Axis,
}

impl FigureDesign {
    pub(crate) const fn new(id: &'static str, title: &'static str, y: Axis) -> FigureDesign {
        FigureDesign { id, title, y }
    }
}

/// Grid and conclusion build a curve from the same constants and functions, so a lookup cannot
/// miss.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    pub(crate) set: &'static CurveSet,
    pub(crate) name: CurveName,
}

impl Curve {
    pub(crate) const fn named(set: &'static CurveSet, name: &'static str) -> Curve {
        Curve { set, name: CurveName::new(name) }
    }

    pub(crate) const fn in_group(
        set: &'static CurveSet,
        group: &'static str,
        variant: &'static str,
    ) -> Curve {
        Curve { set, name: CurveName::of(group, variant) }
    }

    pub(crate) fn of(set: &'static CurveSet, name: impl ToString) -> Curve {
        Curve { set, name: name.to_string().into() }
    }

    pub(crate) fn variant(set: &'static CurveSet, op: OpKind, variant: impl ToString) -> Curve {
        Curve { set, name: CurveName::from(variant.to_string()).in_group(op) }
    }

    pub(crate) fn ordered(self, order: u32) -> Curve {
        Curve { name: self.name.ordered(order), ..self }
    }
}

impl PartialEq for Curve {
    fn eq(&self, other: &Curve) -> bool {
        std::ptr::eq(self.set, other.set) && self.name == other.name
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) curve: Curve,
    pub(crate) x: f64,
    pub(crate) workload: Workload,
    pub(crate) shape: Option<StripeShape>,
    /// Shows the rate to stable storage instead of the axis's value.
    pub(crate) synced: bool,
    pub(crate) rank: Rank,
    pub(crate) point: Option<usize>,
}

impl Cell {
    pub(crate) fn dispensable(&self) -> u32 {
        let rank = match self.rank {
            Rank::Core => 0,
            Rank::Usual => 20,
            Rank::Rich => 40,
        };
        let size = match self.workload.request_bytes {
            _ if self.curve.set.every_size => 0,
            4096 | 65_536 | 1_048_576 => 0,
            16_384 | 262_144 => 4,
            _ => 8,
        };
        rank + size + self.curve.set.priority
    }
}

#[derive(Debug, Default)]
pub(crate) struct Grid {
    pub(crate) cells: Vec<Cell>,
    pub(crate) skipped: Option<String>,
    pub(crate) notes: Vec<String>,
}

impl Grid {
    pub(crate) fn new(setting: &StudyContext) -> Grid {
        Grid { notes: setting.note(), ..Grid::default() }
    }

    pub(crate) fn skipped(why: impl Into<String>) -> Grid {
        Grid { skipped: Some(why.into()), ..Grid::default() }
    }

    pub(crate) fn add(
        &mut self,
        curve: Curve,
        x: impl Into<f64>,
        workload: Workload,
        rank: Rank,
    ) -> &mut Cell {
        let last = self.cells.len();
        self.cells.push(Cell {
            curve,
            x: x.into(),
            workload,
            shape: None,
            synced: false,
            rank,
            point: None,
        });
        &mut self.cells[last]
    }
}
