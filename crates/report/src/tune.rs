use crate::format::duration;
use crate::terminal::{Tone, paint, table, wrap};
use machine::text::printable;
use machine::units::{show_change, show_change_range};
use results::compare::{Difference, Measure};
use tune::{KeepLine, Outcome, Tried, Tuning};

fn say(out: &mut String, tone: Tone, text: &str, width: usize, colour: bool) {
    for line in wrap(text, width) {
        out.push_str(&paint(tone, &line, colour));
        out.push('\n');
    }
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn warnings(tuning: &Tuning, width: usize, colour: bool) -> String {
    let mut out = String::new();
    for warning in &tuning.warnings {
        say(&mut out, Tone::Doubt, &format!("! {warning}"), width, colour);
    }
    out
}

pub fn plan(tuning: &Tuning, width: usize, colour: bool) -> String {
    let width = width.max(40);
    let mut out = warnings(tuning, width, colour);
    let values = if tuning.plan.len() == 1 { "value" } else { "values" };
    let title = format!(
        "Plan for {}: {} {values} to try, each interleaved with the current one",
        tuning.target,
        tuning.plan.len()
    );
    say(&mut out, Tone::Strong, &title, width, colour);
    for workload in &tuning.workloads {
        say(&mut out, Tone::Quiet, &format!("workload: {workload}"), width, colour);
    }
    if !tuning.plan.is_empty() {
        out.push('\n');
        let rows: Vec<Vec<String>> = tuning
            .plan
            .chunk_by(|a, b| (&a.knob, &a.of) == (&b.knob, &b.of))
            .map(planned)
            .collect();
        let names = ["knob", "of", "from", "to", "what it is"];
        out.push_str(&table(&head(&names), &rows, names.len(), width, colour));
    }
    if !tuning.left_out.is_empty() {
        out.push_str("\nNot tried:\n");
        for one in &tuning.left_out {
            say(
                &mut out,
                Tone::Quiet,
                &format!("{} of {}: {}", one.knob, one.of, one.why),
                width,
                colour,
            );
        }
    }
    out.push('\n');
    let minimum = tuning.min_ns.map_or(String::new(), |ns| format!("at least {}, ", duration(ns)));
    let max = tuning.budget_ns.max(tuning.min_ns.unwrap_or(0));
    let time = format!(
        "It takes {minimum}at most about {}, and stops early once every trial is decided. Every setting is restored at the end.",
        duration(max)
    );
    say(&mut out, Tone::Plain, &time, width, colour);
    say(
        &mut out,
        Tone::Strong,
        "Dry run. Nothing was touched. Add --yes to run these trials.",
        width,
        colour,
    );
    out
}

fn planned(steps: &[tune::Step]) -> Vec<String> {
    let first = &steps[0];
    let to: Vec<&str> = steps.iter().map(|step| step.to.as_str()).collect();
    let risks: String = steps
        .iter()
        .filter_map(|step| Some(format!("; {} CAN LOSE DATA: {}", step.to, step.risk.as_ref()?)))
        .collect();
    let about = format!("{}{risks}", first.about);
    [&first.knob, &first.of, &first.from, &to.join(", "), &about]
        .map(|text| printable(text))
        .to_vec()
}

pub fn terminal(tuning: &Tuning, width: usize, colour: bool) -> String {
    let width = width.max(40);
    let mut out = warnings(tuning, width, colour);
    for (place, sentence) in tuning.sentences.iter().enumerate() {
        say(&mut out, if place == 0 { Tone::Strong } else { Tone::Plain }, sentence, width, colour);
    }
    let mut rows: Vec<Vec<String>> =
        tuning.tried.iter().flat_map(|one| rows_of(&one.knob, one)).collect();
    rows.extend(tuning.combination.iter().flat_map(|one| rows_of("combination", one)));
    if !rows.is_empty() {
        out.push('\n');
        let names = ["knob", "from", "to", "rate", "95 % interval", "p99", "cpu/byte", ""];
        out.push_str(&table(&head(&names), &rows, 3, width, colour));
        if tuning.tried.iter().chain(&tuning.combination).any(|one| !one.resized.is_empty()) {
            let reported = "If the request size changes, p99 is that of a request of the new size.";
            say(&mut out, Tone::Quiet, reported, width, colour);
        }
    }
    for (place, lines) in by_place(&tuning.keep) {
        out.push_str(&format!("\nTo keep it, {}:\n", printable(place)));
        // Verbatim lines of a file: never wrapped.
        lines.iter().for_each(|line| out.push_str(&format!("    {}\n", printable(line))));
    }
    if !tuning.prove.is_empty() {
        out.push_str("\nTo measure the change again:\n");
        tuning
            .prove
            .iter()
            .for_each(|command| out.push_str(&format!("    {}\n", printable(command))));
    }
    out
}

fn by_place(keep: &[KeepLine]) -> Vec<(&str, Vec<&str>)> {
    let mut places: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in keep {
        match places.iter_mut().find(|(place, _)| *place == one.place) {
            Some((_, lines)) => lines.push(&one.line),
            None => places.push((&one.place, vec![&one.line])),
        }
    }
    places
}

fn rows_of(name: &str, tried: &Tried) -> Vec<Vec<String>> {
    let names = || [name, &tried.from, &tried.to].map(printable).to_vec();
    let rates: Vec<&Difference> = tried.rates().collect();
    if rates.is_empty() || tried.outcome == Outcome::Failed {
        let why = tried.failed.as_deref().unwrap_or("nothing was measured");
        let word = format!("{}: {}", tried.outcome.word(), printable(why));
        return vec![[names(), vec![String::new(); 4], vec![word]].concat()];
    }
    let several = rates.len() > 1;
    let row = |rate: &&Difference| {
        let other = |measure, percent: fn(&Tried, &Difference) -> f64| {
            let of = |one: &&Difference| one.measure == measure && one.question == rate.question;
            tried
                .differences
                .iter()
                .find(of)
                .map_or(String::new(), |one| show_change(percent(tried, one)))
        };
        let interval = match rate.interval_95_percent {
            Some([low, high]) if low == high => "exact".into(),
            Some(ends) => show_change_range(ends),
            None => "too few runs".into(),
        };
        let word = match (several, tried.outcome) {
            (true, _) => format!("{}; {}", tried.outcome.word(), printable(&rate.label)),
            (false, Outcome::NoDifference | Outcome::Undecided) => {
                would_show(tried.outcome.word(), rate)
            }
            (false, outcome) => outcome.word().into(),
        };
        let cells = vec![
            show_change(rate.change_percent),
            interval,
            other(Measure::LatencyP99, |_, one| one.change_percent),
            other(Measure::Cpu, Tried::cpu_per_byte_percent),
            word,
        ];
        [names(), cells].concat()
    };
    rates.iter().map(row).collect()
}

fn would_show(word: &str, rate: &Difference) -> String {
    match rate.detectable_percent {
        Some(seen) if seen > 0.0 => format!("{word} (≥ {seen:.1} % would show)"),
        _ => word.into(),
    }
}
