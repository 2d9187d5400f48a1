use crate::Error;
use crate::html::environment;
use minijinja::context;
use minijinja::value::Value;
use results::Program;
use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

#[derive(Serialize)]
pub(crate) struct PagePart {
    pub(crate) title: String,
    pub(crate) text: String,
    #[serde(serialize_with = "safe")]
    pub(crate) charts: Vec<String>,
    pub(crate) tables: Vec<Table>,
}

fn safe<S: serde::Serializer>(charts: &[String], to: S) -> Result<S::Ok, S::Error> {
    let values: Vec<Value> =
        charts.iter().map(|chart| Value::from_safe_string(chart.clone())).collect();
    values.serialize(to)
}

pub(crate) struct Page<'a> {
    pub(crate) kind: &'a str,
    pub(crate) target: &'a str,
    pub(crate) about: String,
    pub(crate) program: &'a Program,
    pub(crate) doubts: &'a [String],
    pub(crate) notice: Option<String>,
    pub(crate) sentences: &'a [String],
    pub(crate) parts: Vec<PagePart>,
}

pub(crate) fn html(page: &Page<'_>) -> Result<String, Error> {
    let mut environment = environment()?;
    environment.add_template("course.html", include_str!("../templates/course.html"))?;
    let context = context! {
        values => Value::from_safe_string("{}".into()),
        kind => page.kind,
        target => page.target,
        about => page.about,
        program => format!("{} {}", page.program.name, page.program.version),
        doubts => page.doubts,
        notice => page.notice,
        answer => page.sentences.first(),
        sentences => page.sentences.iter().skip(1).collect::<Vec<_>>(),
        parts => page.parts,
    };
    Ok(environment.get_template("course.html")?.render(context)?)
}
