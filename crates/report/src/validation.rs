//! A page that compares a simulated machine with references.

use crate::Error;
use crate::html;
use minijinja::context;
use minijinja::value::Value;
use results::Figure;
use serde::Serialize;

#[derive(Debug, Clone, Default)]
pub struct Page {
    /// As `validate`.
    pub kind: String,
    pub title: String,
    pub about: String,
    pub program: String,
    pub sections: Vec<Section>,
}

#[derive(Debug, Clone, Default)]
pub struct Section {
    pub title: String,
    pub question: String,
    pub sentence: String,
    pub figures: Vec<Figure>,
    pub tables: Vec<Table>,
}

/// The first column names the rows.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Table {
    pub title: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
    pub folded: bool,
}

#[derive(Serialize)]
struct SectionView {
    view: html::ExperimentView,
    tables: Vec<Table>,
}

pub fn page(page: &Page) -> Result<String, Error> {
    let mut environment = html::environment()?;
    environment.add_template("validation.html", include_str!("../templates/validation.html"))?;
    let mut place = 0;
    let mut figures = Vec::new();
    let mut sections = Vec::with_capacity(page.sections.len());
    for (number, section) in page.sections.iter().enumerate() {
        let view = html::section_view(
            number,
            place,
            [&section.title, &section.question, &section.sentence],
            &section.figures,
        );
        figures.extend(
            section.figures.iter().enumerate().map(|(index, figure)| (place + index, figure)),
        );
        place += section.figures.len();
        sections.push(SectionView { view, tables: section.tables.clone() });
    }
    let context = context! {
        values => Value::from_safe_string(html::figures_json(&figures)?),
        kind => page.kind,
        target => page.title,
        about => page.about,
        program => page.program,
        sections,
    };
    Ok(environment.get_template("validation.html")?.render(context)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{Axis, CurveName, Series, Value as Point};

    fn figure(id: &str) -> Figure {
        let series = |whose, by: f64| {
            let value = |x| Point { x, y: Some(x * by), interval_95: None, point: None };
            Series::new(CurveName::of("read", whose), [4096.0, 65536.0].map(value).to_vec())
        };
        let series = vec![series("measured", 100.0), series("simulated", 110.0)];
        Figure {
            id: id.into(),
            title: "Reading <fast>".into(),
            x: Axis::RequestBytes,
            y: Axis::BytesPerS,
            series,
        }
    }

    #[test]
    fn every_figure_has_its_drawing_and_its_values() {
        let table = Table {
            title: "Bars".into(),
            head: vec!["what".into(), "is".into()],
            rows: vec![vec!["mean & more".into(), "5 %".into()]],
            folded: false,
        };
        let section = |title: &str, figures| Section {
            title: title.into(),
            figures,
            tables: vec![table.clone()],
            ..Section::default()
        };
        let sections =
            vec![section("One", vec![figure("a"), figure("b")]), section("Two", vec![figure("a")])];
        let html = page(&Page {
            kind: "validate".into(),
            title: "twin".into(),
            sections,
            ..Page::default()
        })
        .expect("a page");
        for anchor in ["f0-a", "f1-b", "f2-a"] {
            assert!(html.contains(&format!("<figure id=\"{anchor}\"")), "{anchor}");
            assert!(
                html.contains(&format!("\"{anchor}\":{{\"curves\"")),
                "{anchor} has values to point at"
            );
        }
        assert_eq!(html.matches("<svg").count(), 6, "each for a wide room and a narrow one");
        assert!(
            html.contains("Reading &lt;fast&gt;")
                && html.contains("mean &amp; more")
                && !html.contains("<fast>")
        );
    }
}
