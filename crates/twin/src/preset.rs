use crate::description::Description;
use crate::{Error, Result};
use files::Input;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const PRESETS: [(&str, &str); 14] = [
    ("gateway-1997", include_str!("../presets/gateway-1997.toml")),
    ("server-2003", include_str!("../presets/server-2003.toml")),
    ("laptop-xp", include_str!("../presets/laptop-xp.toml")),
    ("server-raid10", include_str!("../presets/server-raid10.toml")),
    ("nvme", include_str!("../presets/nvme.toml")),
    ("nvme-qlc", include_str!("../presets/nvme-qlc.toml")),
    ("nvme-hot", include_str!("../presets/nvme-hot.toml")),
    ("sata-ssd", include_str!("../presets/sata-ssd.toml")),
    ("hdd-20tb", include_str!("../presets/hdd-20tb.toml")),
    ("cloud", include_str!("../presets/cloud.toml")),
    ("cloud-burst", include_str!("../presets/cloud-burst.toml")),
    ("cloud-hdd", include_str!("../presets/cloud-hdd.toml")),
    ("virtio", include_str!("../presets/virtio.toml")),
    ("nas", include_str!("../presets/nas.toml")),
];

pub fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

/// Of a built-in machine.
pub fn text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

pub const DESCRIPTION: Input = Input::new("a machine's description", 1 << 20);

/// A built-in machine, or a `.toml` file.
pub fn load(name: &str) -> Result<Description> {
    if let Some(text) = text(name) {
        return parse(name, text);
    }
    if !name.ends_with(".toml") {
        return Err(Error::Unknown {
            name: name.to_owned(),
            known: names().collect::<Vec<_>>().join(", "),
        });
    }
    let text = DESCRIPTION
        .text(Path::new(name))
        .map_err(|e| Error::File { file: name.to_owned(), reason: e.to_string() })?;
    parse(name, &text)
}

pub fn parse(file: &str, text: &str) -> Result<Description> {
    let at = |span: Option<Range<usize>>, reason: String| {
        let line =
            1 + span.map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count());
        Error::Description { file: file.to_owned(), line, reason }
    };
    let table = DeTable::parse(text).map_err(|e| at(e.span(), e.message().to_owned()))?;
    each_number(
        table.get_ref(),
        &mut String::new(),
        &mut |path, number, span| match wrong_number(path, number) {
            Some(reason) => Err(at(Some(span), format!("{path} = {number}: {reason}"))),
            None => Ok(()),
        },
    )?;
    let description: Description = match based(table.get_ref(), text) {
        None => toml::from_str(text).map_err(|e| at(e.span(), e.message().to_owned()))?,
        Some(whole) => whole
            .map_err(|reason| at(find(table.get_ref(), BASE), reason))?
            .try_into()
            .map_err(|e: toml::de::Error| at(None, e.message().to_owned()))?,
    };
    match check(&description) {
        Some((path, reason)) => Err(at(find(table.get_ref(), &path), format!("{path}: {reason}"))),
        None => Ok(description),
    }
}

/// Names a built-in machine; the file gives only what differs.
const BASE: &str = "base";

fn based(table: &DeTable<'_>, text: &str) -> Option<std::result::Result<toml::Table, String>> {
    let base = table.get(BASE)?.get_ref().as_str().unwrap_or_default();
    let whole = || {
        let known = || names().collect::<Vec<_>>().join(", ");
        let from =
            self::text(base).ok_or_else(|| format!("no such machine; name one of {}", known()))?;
        let read = |text: &str| toml::from_str::<toml::Table>(text).map_err(|e| e.to_string());
        let (mut all, mut own) = (read(from)?, read(text)?);
        if all.contains_key(BASE) {
            return Err(format!("{base} has a base itself; name that one"));
        }
        own.remove(BASE);
        merge(&mut all, own);
        Ok(all)
    };
    Some(whole())
}

fn merge(all: &mut toml::Table, own: toml::Table) {
    for (key, value) in own {
        match (all.get_mut(&key), value) {
            (Some(toml::Value::Table(all)), toml::Value::Table(own)) => merge(all, own),
            (_, value) => drop(all.insert(key, value)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Sourced {
    pub path: String,
    pub value: f64,
    /// Starts with `fitted` for a calibrated number, `solved` for one computed from a figure.
    pub source: Option<String>,
}

impl Sourced {
    fn came(&self, how: &str) -> bool {
        self.source.as_deref().is_some_and(|source| source.starts_with(how))
    }

    /// Calibrated to several figures at once.
    pub fn is_fitted(&self) -> bool {
        self.came("fitted")
    }

    /// Computed from a published figure, which is then no test of it.
    pub fn is_solved(&self) -> bool {
        self.came("solved")
    }
}

/// Every number of a machine file.
///
/// ```
/// let text = twin::preset::text("gateway-1997").unwrap();
/// let numbers = twin::preset::numbers("gateway-1997", text)?;
/// assert!(numbers.iter().any(|number| number.source.is_some()));
/// # Ok::<(), twin::Error>(())
/// ```
pub fn numbers(file: &str, text: &str) -> Result<Vec<Sourced>> {
    let wrong = |reason: String| Error::Description { file: file.to_owned(), line: 1, reason };
    let sources = parse(file, text)?.sources;
    let read = |text| DeTable::parse(text).map_err(|e| wrong(e.message().to_owned()));
    let mut table = read(text)?;
    let whole;
    if let Some(all) = based(table.get_ref(), text) {
        whole = all.map_err(wrong)?.to_string();
        table = read(&whole)?;
    }
    let mut numbers = Vec::new();
    each_number(table.get_ref(), &mut String::new(), &mut |path, value, _| {
        // Match the number itself, else the nearest enclosing table.
        let covers = |key: &str| {
            path == key || path.strip_prefix(key).is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        let source = sources.iter().filter(|(key, _)| covers(key)).max_by_key(|(key, _)| key.len());
        numbers.push(Sourced {
            path: path.to_owned(),
            value,
            source: source.map(|(_, text)| text.clone()),
        });
        Ok(())
    })?;
    Ok(numbers)
}

type OnNumber<'a> = dyn FnMut(&str, f64, Range<usize>) -> Result<()> + 'a;

fn each_number(table: &DeTable<'_>, path: &mut String, on: &mut OnNumber<'_>) -> Result<()> {
    for (key, value) in table {
        let before = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key.get_ref());
        number_in(value, path, on)?;
        path.truncate(before);
    }
    Ok(())
}

fn number_in(value: &Spanned<DeValue<'_>>, path: &mut String, on: &mut OnNumber<'_>) -> Result<()> {
    match value.get_ref() {
        DeValue::Table(table) => each_number(table, path, on),
        DeValue::Array(array) => {
            for (index, item) in array.iter().enumerate() {
                let before = path.len();
                path.push_str(&format!("[{index}]"));
                number_in(item, path, on)?;
                path.truncate(before);
            }
            Ok(())
        }
        DeValue::Integer(number) => {
            on(path, number.as_str().replace('_', "").parse().unwrap_or(f64::NAN), value.span())
        }
        DeValue::Float(number) => {
            on(path, number.as_str().replace('_', "").parse().unwrap_or(f64::NAN), value.span())
        }
        _ => Ok(()),
    }
}

const POSITIVE: [&str; 31] = [
    "_bytes_per_s",
    ".rpm",
    ".heads",
    ".cores",
    ".disks",
    ".bus_disks",
    ".buses",
    ".queue",
    ".queue_reads",
    ".channels",
    ".dies_per_channel",
    ".die_page_bytes",
    ".block_pages",
    ".spare_percent",
    "iops",
    ".capacity_bytes",
    ".unit_bytes",
    ".block_bytes",
    ".command_bytes",
    ".stripe_bytes",
    ".segment_bytes",
    ".freed_bytes",
    ".segments",
    ".write_bytes",
    ".workers",
    ".cylinders",
    "_sectors",
    ".request_bytes",
    "memory.bytes",
    ".line_bytes",
    "lines.read_ns",
];

fn wrong_number(path: &str, number: f64) -> Option<&'static str> {
    if !number.is_finite() {
        Some("not a number; write a plain decimal number")
    } else if number < 0.0 {
        Some("a negative number has no meaning here; give zero or more")
    } else if number == 0.0 && POSITIVE.iter().any(|end| path.ends_with(end)) {
        Some("zero has no meaning here; give a positive number")
    } else if path.ends_with("_percent") && number > 100.0 {
        Some("more than all; give at most 100")
    } else {
        None
    }
}

/// Falls back to the nearest enclosing table.
fn find(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let (mut here, mut span) = (table, None);
    for part in path.split('.') {
        let Some((key, value)) = here.iter().find(|(key, _)| key.get_ref().as_ref() == part) else {
            break;
        };
        span = Some(key.span());
        let DeValue::Table(inner) = value.get_ref() else { break };
        here = inner;
    }
    span
}

/// A contradiction's path and reason.
pub fn check(d: &Description) -> Option<(String, String)> {
    let fs = &d.file_system;
    let problem = |path: &str, reason: &str| Some((path.to_owned(), reason.to_owned()));
    if !d.drives.contains_key(&d.volume.drive) {
        return Some((
            "volume.drive".to_owned(),
            format!("unknown drive '{}'; name one of [drives]", d.volume.drive),
        ));
    }
    if !fs.unit_bytes.is_multiple_of(u64::from(fs.block_bytes))
        || fs.unit_bytes / u64::from(fs.block_bytes) > 64
    {
        return problem("file_system.unit_bytes", "must be from 1 to 64 blocks of block_bytes");
    }
    if fs.dirty_bytes < fs.unit_bytes || fs.dirty_bytes > fs.cache_bytes {
        return problem("file_system.dirty_bytes", "must be between unit_bytes and cache_bytes");
    }
    if fs.background_bytes > fs.dirty_bytes {
        return problem(
            "file_system.background_bytes",
            "is more than dirty_bytes, at which writers wait",
        );
    }
    if fs.cache_bytes > d.memory.bytes {
        return problem("file_system.cache_bytes", "is more than memory.bytes");
    }
    if fs.writeback_depth == 0 {
        return problem(
            "file_system.writeback_depth",
            "without write-backs no data are ever written; give 1 or more",
        );
    }
    if let Some(reason) = d.memory.contradiction() {
        return problem("memory", reason);
    }
    if d.adapter.as_ref().is_some_and(|adapter| adapter.buses == 0) {
        return problem("adapter.buses", "an adapter without a bus moves nothing; give 1 or more");
    }
    if !d.volume.kind.takes(d.volume.disks) {
        return problem("volume.kind", "needs more disks; give volume.disks");
    }
    if d.volume.buses > d.volume.disks {
        return problem("volume.buses", "more buses than disks");
    }
    d.drives.iter().find_map(|(name, drive)| {
        let (key, reason) = drive.model().contradiction(&d.buses)?;
        Some((format!("drives.{name}.{key}"), reason))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset() -> &'static str {
        text("gateway-1997").unwrap()
    }

    fn refused(from: &str, to: &str) -> (usize, String) {
        let changed = preset().replacen(from, to, 1);
        assert_ne!(changed, preset(), "'{from}' is in the preset");
        match parse("test.toml", &changed).unwrap_err() {
            Error::Description { line, reason, .. } => (line, reason),
            other => panic!("{other}"),
        }
    }

    fn line_of(what: &str) -> usize {
        1 + preset().lines().position(|line| line.contains(what)).unwrap()
    }

    #[test]
    fn every_preset_reads_and_every_number_has_a_source() {
        for name in names() {
            let numbers = numbers(name, text(name).unwrap()).unwrap_or_else(|e| panic!("{e}"));
            for number in &numbers {
                assert!(number.source.is_some(), "{name}: {} has no source", number.path);
            }
            let fitted: Vec<_> = numbers.iter().filter(|n| n.is_fitted()).collect();
            assert!(fitted.len() <= 25, "{name} has {} fitted numbers: {fitted:?}", fitted.len());
            let description = load(name).unwrap();
            assert_eq!(description.name, name);
            for key in description.sources.keys() {
                assert!(
                    numbers.iter().any(|n| n.path == *key
                        || n.path.starts_with(&format!("{key}."))
                        || n.path.starts_with(&format!("{key}["))),
                    "{name}: source of nothing: {key}"
                );
            }
        }
    }

    #[test]
    fn a_file_with_a_base_gives_only_what_differs_and_its_sources() {
        for name in names() {
            let own = DeTable::parse(text(name).unwrap()).unwrap();
            let Some(all) = based(own.get_ref(), text(name).unwrap()) else { continue };
            assert!(all.is_ok(), "{name}");
            let sources = own.get_ref()["sources"].get_ref().as_table().unwrap();
            let mut check = |path: &str, _, _| {
                let covers = |key: &str| {
                    path.strip_prefix(key)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
                };
                let given = sources.keys().any(|key| covers(key.get_ref()));
                assert!(given, "{name}: {path} has the source of the base's number");
                Ok(())
            };
            each_number(own.get_ref(), &mut String::new(), &mut check).unwrap();
        }
        let (base, raid10) = (load("server-2003").unwrap(), load("server-raid10").unwrap());
        assert_eq!(raid10.drives, base.drives);
        assert_ne!(raid10.volume, base.volume);
        for (text, line, word) in [
            ("base = \"server-1999\"\n", 1, "server-2003"),
            ("name = \"mine\"\nbase = \"server-raid10\"\n", 2, "a base itself"),
            ("base = \"nvme\"\n[volume]\ndisks = 0\n", 3, "zero"),
            ("base = \"nvme\"\n[volume]\nkind = \"raid10\"\n", 3, "more disks"),
            ("base = \"nvme\"\n[volume]\ncolour = 1\n", 1, "colour"),
        ] {
            match parse("mine.toml", text).unwrap_err() {
                Error::Description { line: at, reason, .. } => {
                    assert!(at == line && reason.contains(word), "{text}: {at}: {reason}");
                }
                other => panic!("{other}"),
            }
        }
    }

    #[test]
    fn a_bad_file_is_refused_with_its_line() {
        let (line, reason) = refused("rpm = 7200", "rpm = -7200");
        assert_eq!(line, line_of("rpm = 7200"), "{reason}");
        assert!(reason.contains("negative") && reason.contains("-7200"), "{reason}");
        let (line, reason) = refused("heads = 21", "heads = 0");
        assert_eq!(line, line_of("heads = 21"), "{reason}");
        let (line, reason) = refused("heads = 21", "haeds = 21");
        assert!(reason.contains("haeds") && line > 1, "{line}: {reason}");
        let (_, reason) = refused("rpm = 7200\n", "");
        assert!(reason.contains("rpm"), "{reason}");
        let (line, reason) = refused("bus = \"fast-wide\"", "bus = \"fast-wild\"");
        assert_eq!(line, line_of("bus = \"fast-wide\""), "{reason}");
        assert!(reason.contains("fast-wild"), "{reason}");
        let (_, reason) = refused("rpm = 7200", "rpm = many");
        assert!(!reason.is_empty());
    }
}
