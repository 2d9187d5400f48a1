//! diskspd's text report.

use super::case::{case, in_ms};
use super::lines::{at, between, number};
use machine::units::parse_size;
use results::compare::{Measure, Measurement, Reading};

/// The first target's, named as in the XML form.
#[derive(Debug, Clone, Default)]
struct Settings {
    writes: String,
    random: bool,
    block: String,
    outstanding: String,
    threads: String,
    stride: String,
    no_cache: Option<bool>,
    write_through: Option<bool>,
    /// A second target has begun; the first represents the span.
    complete: bool,
}

impl Settings {
    fn take(&mut self, line: &str) {
        let size = |text: &str| {
            let bytes = text.trim().trim_end_matches("iB").trim_end_matches('B').to_string();
            parse_size(&bytes).map_or(text.trim().to_string(), |bytes| bytes.to_string())
        };
        if let Some((_, ratio)) = line.split_once("performing mix test (read/write ratio: ") {
            self.writes = ratio.split('/').nth(1).unwrap_or_default().trim_end_matches(')').into();
        } else if line.contains("performing write test") {
            self.writes = "100".into();
        } else if let Some(text) = line.strip_prefix("block size: ") {
            self.block = size(text);
        } else if line.starts_with("using random I/O") {
            self.random = true;
        } else if line.starts_with("using sequential I/O")
            || line.starts_with("using interlocked sequential I/O")
        {
            self.stride = between(line, "(stride: ", ")").map(size).unwrap_or_default();
        } else if let Some(count) = line.strip_prefix("number of outstanding I/O operations") {
            self.outstanding =
                count.trim_start_matches(" per thread").trim_start_matches(": ").into();
        } else if let Some(count) = line.strip_prefix("threads per file: ") {
            self.threads = count.trim().into();
        } else if line.starts_with("software cache disabled") {
            self.no_cache = Some(true);
        } else if line.starts_with("using software cache") {
            self.no_cache = Some(false);
        }
        if line.contains("writethrough on") {
            self.write_through = Some(true);
        } else if line.contains("writethrough off") {
            self.write_through = Some(false);
        }
    }

    fn case(&self, span: usize, readings: Vec<Reading>) -> Measurement {
        let order = if self.random { "random" } else { "sequential" };
        let does = match self.writes.as_str() {
            "" | "0" => "reads".to_string(),
            "100" => "writes".to_string(),
            percent => format!("mixes, {percent} % writes"),
        };
        let flag = |flag: Option<bool>| {
            flag.filter(|flag| *flag).map_or(String::new(), |flag| flag.to_string())
        };
        let settings = [
            ("span", if span > 0 { (span + 1).to_string() } else { String::new() }),
            ("does", does.clone()),
            ("order", order.to_string()),
            ("block", self.block.clone()),
            ("outstanding", self.outstanding.clone()),
            ("threads", self.threads.clone()),
            ("stride", self.stride.clone()),
            ("no_os_cache", flag(self.no_cache)),
            ("write_through", flag(self.write_through)),
        ];
        case(&format!("{order} {does}"), &settings, readings)
    }
}

pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut settings: Vec<Settings> = Vec::new();
    let mut all = Vec::new();
    // Columns of the table of all requests, once its head was read.
    let mut columns: Option<Vec<&str>> = None;
    let mut part = "";
    let mut span: Option<(usize, Vec<Reading>)> = None;
    let mut commands = 0;
    for (place, full) in text.lines().enumerate() {
        let line = full.trim();
        if line.starts_with("Command Line:") {
            // Another run in the same file.
            commands += 1;
            if commands > 1 {
                finish(&mut all, &settings, span.take());
                settings.clear();
            }
        } else if line.starts_with("timespan:") {
            settings.push(Settings::default());
        } else if let Some(words) = line.strip_prefix("Results for timespan ") {
            finish(&mut all, &settings, span.take());
            let words = words.trim_end_matches(':');
            span = Some((number(words, place)?.max(1.0) as usize - 1, Vec::new()));
            part = "";
        } else if ["Total IO", "Read IO", "Write IO"].contains(&line) {
            (part, columns) = (line, None);
        } else if line.starts_with("Total latency distribution") {
            part = line;
        } else if part == "Total IO" && line.starts_with("thread |") {
            columns = Some(line.split('|').map(str::trim).collect());
        } else if let (Some(rest), Some(heads), Some((_, readings))) =
            (line.strip_prefix("total:"), &columns, &mut span)
        {
            let cells: Vec<&str> = rest.split('|').map(str::trim).collect();
            for (head, cell) in heads[1..].iter().zip(&cells) {
                let measure = match *head {
                    "I/O per s" | "I/O/s" => Measure::Iops,
                    "MiB/s" | "MB/s" => Measure::Throughput,
                    "AvgLat" => Measure::LatencyMean,
                    _ => continue,
                };
                let factor = match measure {
                    Measure::Throughput => 1_048_576.0,
                    Measure::LatencyMean => 1e6,
                    _ => 1.0,
                };
                readings.push(Reading::value(measure, number(cell, place)? * factor));
            }
            if readings.is_empty() {
                return Err(at(place, "the table has no column of I/O per s or MiB/s"));
            }
            columns = None;
        } else if let (true, Some((_, readings))) = (part.starts_with("Total latency"), &mut span) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let measure = match cells[0] {
                "50th" => Measure::LatencyP50,
                "99th" => Measure::LatencyP99,
                "3-nines" => Measure::LatencyP999,
                _ => continue,
            };
            if let Some(total) = cells.get(3).filter(|cell| **cell != "N/A") {
                readings.push(in_ms(measure, number(total, place)?));
            }
        } else if let (None, Some(last)) = (&span, settings.last_mut()) {
            if line.starts_with("path:") {
                last.complete = !last.block.is_empty();
            }
            if !last.complete {
                last.take(line);
            }
        }
    }
    finish(&mut all, &settings, span);
    Ok(all)
}

fn finish(all: &mut Vec<Measurement>, settings: &[Settings], span: Option<(usize, Vec<Reading>)>) {
    let Some((place, readings)) = span else { return };
    let settings = settings.get(place).cloned().unwrap_or_default();
    all.push(settings.case(place, readings));
}
