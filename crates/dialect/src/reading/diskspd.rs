use super::case::{case, in_ms};
use crate::diskspd::{Element, tree};
use results::compare::{Measure, Measurement, Reading};

fn child<'a>(element: &'a Element, path: &str) -> Option<&'a Element> {
    path.split('/')
        .try_fold(element, |at, name| at.children.iter().find(|child| child.name == name))
}

fn children<'a>(element: &'a Element, name: &'a str) -> impl Iterator<Item = &'a Element> {
    element.children.iter().filter(move |child| child.name == name)
}

fn number(element: &Element, path: &str) -> Result<Option<f64>, String> {
    let Some(value) = child(element, path).map(Element::value) else { return Ok(None) };
    let number = value.parse().map_err(|_| format!("<{path}> is '{value}', not a number"))?;
    Ok(Some(number))
}

pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let root = tree(text).map_err(|error| error.to_string())?;
    let results = child(&root, "Results").ok_or("it has no <Results>")?;
    let profiles: Vec<&Element> = child(results, "Profile/TimeSpans")
        .map(|spans| children(spans, "TimeSpan").collect())
        .unwrap_or_default();
    let spans = children(results, "TimeSpan").enumerate();
    spans.map(|(place, span)| time_span(place, span, profiles.get(place).copied())).collect()
}

fn time_span(
    place: usize,
    span: &Element,
    profile: Option<&Element>,
) -> Result<Measurement, String> {
    let seconds = number(span, "TestTimeSeconds")?
        .filter(|time| *time > 0.0)
        .ok_or("a time span has no test time")?;
    let targets = || children(span, "Thread").flat_map(|thread| children(thread, "Target"));
    let sum = |name: &str| {
        targets()
            .map(|target| Ok(number(target, name)?.unwrap_or(0.0)))
            .sum::<Result<f64, String>>()
    };
    let mut readings = vec![
        Reading::value(Measure::Iops, sum("IOCount")? / seconds),
        Reading::value(Measure::Throughput, sum("BytesCount")? / seconds),
    ];
    if let Some(latency) = child(span, "Latency") {
        readings.extend(
            number(latency, "AverageTotalMilliseconds")?.map(|ms| in_ms(Measure::LatencyMean, ms)),
        );
        for bucket in children(latency, "Bucket") {
            let measure = match child(bucket, "Percentile").map(Element::value) {
                Some("50") => Measure::LatencyP50,
                Some("99") => Measure::LatencyP99,
                Some("99.9") => Measure::LatencyP999,
                _ => continue,
            };
            readings.extend(number(bucket, "TotalMilliseconds")?.map(|ms| in_ms(measure, ms)));
        }
    }
    let target = profile.and_then(|profile| child(profile, "Targets/Target"));
    let setting = |name: &str| {
        target
            .and_then(|target| child(target, name))
            .map_or(String::new(), |one| one.value().into())
    };
    let random = target.is_some_and(|target| child(target, "Random").is_some());
    let order = if random { "random" } else { "sequential" };
    let writes = setting("WriteRatio");
    let does = match writes.as_str() {
        "" | "0" => "reads".to_string(),
        "100" => "writes".to_string(),
        percent => format!("mixes, {percent} % writes"),
    };
    let settings = [
        ("span", if place > 0 { (place + 1).to_string() } else { String::new() }),
        ("does", does.clone()),
        ("order", order.to_string()),
        ("block", setting("BlockSize")),
        ("outstanding", setting("RequestCount")),
        ("threads", setting("ThreadsPerFile")),
        ("stride", setting("StrideSize")),
        ("no_os_cache", setting("DisableOSCache")),
        ("write_through", setting("WriteThrough")),
    ];
    Ok(case(&format!("{order} {does}"), &settings, readings))
}
