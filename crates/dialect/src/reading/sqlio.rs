use super::case::{case, in_ms};
use results::compare::{Measure, Measurement, Reading};

#[derive(Default)]
struct Settings {
    does: String,
    threads: String,
    block: String,
    order: String,
    outstanding: String,
    buffering: String,
}

pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut all: Vec<Measurement> = Vec::new();
    let mut settings = Settings::default();
    for (place, line) in text.lines().map(str::trim).enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |prefix: &str| {
            let Some(text) = line.strip_prefix(prefix).map(str::trim) else { return Ok(None) };
            let value = text
                .parse::<f64>()
                .map_err(|_| format!("line {}: '{text}' is not a number", place + 1))?;
            Ok::<_, String>(Some(value).filter(|value| *value > 0.0))
        };
        match words[..] {
            [threads, "thread" | "threads", does @ ("reading" | "writing"), "for", ..] => {
                settings =
                    Settings { does: does.into(), threads: threads.into(), ..Settings::default() };
            }
            ["using", block, order @ ("random" | "sequential"), "IOs", ..] => {
                (settings.block, settings.order) = (block.into(), order.into());
            }
            ["enabling", "multiple", .., "with", outstanding, "outstanding"] => {
                settings.outstanding = outstanding.into()
            }
            ["buffering", "set", "to", ref rest @ ..] => settings.buffering = rest.join(" "),
            _ => {}
        }
        if let Some(iops) = number("IOs/sec:")? {
            all.push(of(&settings, Reading::value(Measure::Iops, iops)));
        }
        let more = [
            number("MBs/sec:")?.map(|rate| Reading::value(Measure::Throughput, rate * 1_048_576.0)),
            number("Avg_Latency(ms):")?.map(|ms| in_ms(Measure::LatencyMean, ms)),
        ];
        if let Some(last) = all.last_mut() {
            last.readings.extend(more.into_iter().flatten());
        }
    }
    Ok(all)
}

fn of(settings: &Settings, rate: Reading) -> Measurement {
    let does = if settings.does == "writing" { "writes" } else { "reads" };
    let keys = [
        ("does", does.to_string()),
        ("order", settings.order.clone()),
        ("block", settings.block.clone()),
        ("threads", settings.threads.clone()),
        ("outstanding", settings.outstanding.clone()),
        ("buffering", settings.buffering.clone()),
    ];
    case(format!("{} {does}", settings.order).trim(), &keys, vec![rate])
}
