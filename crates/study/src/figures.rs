use crate::experiments::Trial;
use crate::found::value;
use crate::grid::{Cell, CurveSet, FigureDesign};
use crate::models;
use results::{Figure, Point, Series};

pub(crate) fn draw(trial: &Trial, points: &[Point]) -> Vec<Figure> {
    let (sets, cells) = (trial.experiment.curves.iter(), &trial.grid.cells);
    let figures = sets
        .flat_map(|set| set.figures.iter().map(move |figure| draw_one(set, figure, cells, points)));
    figures.filter(|figure| !figure.series.is_empty()).collect()
}

fn draw_one(
    set: &'static CurveSet,
    figure: &FigureDesign,
    cells: &[Cell],
    points: &[Point],
) -> Figure {
    let mut series: Vec<Series> = Vec::new();
    for cell in cells.iter().filter(|cell| std::ptr::eq(cell.curve.set, set)) {
        let Some(point) = cell.point else { continue };
        let value = value(cell, figure.y, point, &points[point]);
        match series.iter_mut().find(|series| series.name == cell.curve.name.to_string()) {
            Some(series) => series.values.push(value),
            None => series.push(Series::new(cell.curve.name.clone(), vec![value])),
        }
    }
    for one in &mut series {
        one.values.sort_by(|a, b| a.x.total_cmp(&b.x));
        if set.half_power {
            one.half_power = models::half_power_of_series(set.x, figure.y, one, points);
        }
    }
    Figure { id: figure.id.into(), title: figure.title.into(), x: set.x, y: figure.y, series }
}
