use results::compare::{Measure, Measurement, Reading};

pub(super) fn case(kind: &str, settings: &[(&str, String)], readings: Vec<Reading>) -> Measurement {
    let keys: Vec<(String, String)> = settings
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| ((*name).to_string(), value.clone()))
        .collect();
    let question: Vec<String> =
        keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
    // A bare number does not say what it counts.
    let shown = |(name, value): &(String, String)| match value.parse::<f64>() {
        Ok(_) => format!("{name} {value}"),
        Err(_) => value.clone(),
    };
    let label: Vec<String> = keys.iter().map(shown).collect();
    Measurement {
        question: question.join(" "),
        label: label.join(", "),
        keys,
        kind: kind.into(),
        readings: readings
            .into_iter()
            .filter(|one| one.value.is_finite() && one.value > 0.0)
            .collect(),
        ..Measurement::default()
    }
}

pub(super) fn in_ms(measure: Measure, ms: f64) -> Reading {
    Reading::value(measure, ms * 1e6)
}
