//! The settings after a machine's name:
//! `gateway-1997,drive=st15150w,disks=4,buses=2,wce=off,stripe=64k,raid=5,parity=host`.

use crate::description::{Description, Drive};
use crate::ram_cache::WritePolicy;
use crate::volume::{Kind, Maker};
use crate::{Error, Result, Shape, preset};
use machine::units::parse_size;
use machine::with_settings;

/// ```
/// let setup = twin::Setup::parse("gateway-1997,drive=st15150w,disks=4,wce=off")?;
/// assert_eq!((setup.drive.as_str(), setup.disks, setup.wce), ("st15150w", 4, false));
/// assert!(twin::Setup::parse("gateway-1997,disks=many").is_err());
/// # Ok::<(), twin::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    pub description: Description,
    pub name: String,
    pub drive: String,
    pub disks: u32,
    pub buses: u32,
    pub wce: bool,
    pub stripe: u64,
    pub volume: Kind,
    pub maker: Maker,
    pub failed: Option<u32>,
    pub rebuild: bool,
    /// Bytes from the start of a row of chunks to the first byte of each file.
    pub start: u64,
    pub ram_cache: Option<(u64, WritePolicy)>,
    /// Each read of a small file rewrites its record with the access time.
    pub last_access: bool,
    /// Buffered writes stay in memory, as for temporary files.
    pub temporary: bool,
    pub shape: Shape,
    pub clients: u32,
    given: Vec<Given>,
}

#[derive(Debug, Clone, PartialEq)]
struct Given {
    key: &'static str,
    value: String,
}

impl Given {
    fn text(&self) -> String {
        format!("{}={}", self.key, self.value)
    }

    fn percent(&self) -> Option<f64> {
        let scales =
            SETTINGS.iter().any(|(form, _)| form.strip_prefix(self.key) == Some("=PERCENT"));
        self.value.parse().ok().filter(|_| scales)
    }
}

/// Applied in this order, whatever the order in a name.
pub const SETTINGS: [(&str, &str); 23] = [
    ("drive=NAME", "drive model, one of the machine's"),
    ("disks=N", "how many, as one volume"),
    ("buses=N", "number of buses, filled in disk order"),
    ("wce=on|off", "the drives' write caches"),
    ("stripe=SIZE", "chunk size in bytes"),
    ("start=SIZE", "offset of files from the start of a row of chunks"),
    ("raid=0|1|5|10", "stripe, mirror, stripe with rotating parity, or stripe over mirrored pairs"),
    ("parity=host|array", "who computes parity: the processor, or an array with buses of its own"),
    (
        "striping=host|adapter|array",
        "who makes the stripe of RAID 0 or 10: the processor, the adapter, or an array with buses of its own",
    ),
    ("failed=DISK", "a disk of a mirror, of RAID 5 or of RAID 10 has failed (the first is 0)"),
    ("rebuild=on|off", "rebuild the failed disk while the volume is in use"),
    ("ramcache=SIZE", "RAM cache in front of the volume (0: no cache)"),
    ("ramwrite=back|through", "when the RAM cache calls a write done"),
    (
        "lastaccess=on|off",
        "reading a file rewrites its record, as with NtfsDisableLastAccessUpdate=0; small files only",
    ),
    ("temporary=on|off", "buffered writes stay in memory while there is room"),
    (
        "shape=events|routines|port",
        "how a thread with several requests outstanding learns of completions",
    ),
    ("latency=PERCENT", "latency of the drive's commands, in percent of the original"),
    ("pci=PERCENT", "rate of the I/O bus between adapters and memory, in percent of the original"),
    ("processor=PERCENT", "speed of the processor, in percent of the original"),
    ("link=PERCENT", "rate of the drive's link or of the network, in percent of the original"),
    ("memory=SIZE", "memory for file data"),
    ("readahead=N", "units read ahead"),
    ("clients=N", "computers that use the server at the same time, each with a link of its own"),
];

/// Splits `NAME[,SETTING=VALUE]...[#FILE]` into the machine and the file.
///
/// ```
/// assert_eq!(twin::settings::split_file("cloud,disks=2#log"), ("cloud,disks=2", Some("log")));
/// ```
pub fn split_file(name: &str) -> (&str, Option<&str>) {
    name.split_once('#').map_or((name, None), |(machine, file)| (machine, Some(file)))
}

fn wrong(setting: &str, reason: impl Into<String>) -> Error {
    Error::Setting { setting: setting.to_owned(), reason: reason.into() }
}

fn keys() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().filter_map(|(form, _)| Some(form.split_once('=')?.0))
}

fn row(key: &str) -> Option<usize> {
    keys().position(|known| known == key)
}

fn unknown(setting: &str) -> Error {
    let known: Vec<&str> = SETTINGS.iter().map(|(form, _)| *form).collect();
    wrong(setting, format!("no such setting; there are {}", known.join(", ")))
}

fn split(settings: &str) -> Result<Vec<Given>> {
    let mut all: Vec<Given> = Vec::new();
    for setting in settings.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
        let (key, value) =
            setting.split_once('=').ok_or_else(|| wrong(setting, "write it as setting=value"))?;
        let key = keys().find(|known| *known == key.trim()).ok_or_else(|| unknown(setting))?;
        let one = Given { key, value: value.trim().to_owned() };
        if let Some(other) = all.iter().find(|other| other.key == key) {
            let reason = format!("{} is given too; leave out one of them", other.text());
            return Err(wrong(setting, reason));
        }
        all.push(one);
    }
    Ok(all)
}

/// A setting without effect, and its cause.
fn contradiction(all: &[Given]) -> Option<(&Given, String)> {
    let given = |key: &str| all.iter().find(|one| one.key == key);
    if let (Some(parity), Some(raid)) = (given("parity"), given("raid"))
        && raid.value != "5"
    {
        let instead = if raid.value == "1" { "" } else { " (or striping=array)" };
        let reason =
            format!("{} has no parity; give raid=5, or leave out parity{instead}", raid.text());
        return Some((parity, reason));
    }
    if let Some(striping) = given("striping") {
        let parity = given("parity").or_else(|| given("raid").filter(|raid| raid.value == "5"));
        if let Some(parity) = parity {
            let reason =
                format!("with {}, parity=host|array says who; leave out striping", parity.text());
            return Some((striping, reason));
        }
        if let Some(mirror) = given("raid").filter(|raid| raid.value == "1") {
            return Some((
                striping,
                format!("{} has no stripe; leave out striping", mirror.text()),
            ));
        }
    }
    if let Some(write) = given("ramwrite") {
        let cache = given("ramcache");
        if cache.is_none_or(|cache| parse_size(&cache.value) == Ok(0)) {
            let without = cache.map_or_else(
                || "there is no RAM cache".into(),
                |cache| format!("{} leaves out the cache", cache.text()),
            );
            let reason = format!("{without}; give ramcache=SIZE, or leave out ramwrite");
            return Some((write, reason));
        }
    }
    None
}

impl Setup {
    /// With default settings.
    pub fn of(description: Description) -> Self {
        let volume = description.volume.clone();
        Setup {
            name: description.name.clone(),
            drive: volume.drive,
            disks: volume.disks,
            buses: volume.buses,
            wce: volume.wce,
            stripe: volume.stripe_bytes,
            volume: volume.kind,
            maker: Maker::Host,
            failed: None,
            rebuild: false,
            start: 0,
            ram_cache: None,
            last_access: false,
            temporary: false,
            shape: Shape::default(),
            clients: 1,
            given: Vec::new(),
            description,
        }
    }

    /// Parses `NAME[,SETTING=VALUE]...`, without a trailing `#FILE`.
    pub fn parse(text: &str) -> Result<Self> {
        let (text, _) = split_file(text.strip_prefix("twin:").unwrap_or(text));
        let (name, settings) = text.split_once(',').unwrap_or((text, ""));
        let mut setup = Setup::of(preset::load(name.trim())?);
        setup.apply(settings)?;
        setup.name = text.to_owned();
        Ok(setup)
    }

    /// Applies `SETTING=VALUE[,SETTING=VALUE]...` in any order, over earlier values. Percentages
    /// are of the original.
    ///
    /// # Errors
    /// A setting given twice, or contradictory ones.
    pub fn apply(&mut self, settings: &str) -> Result<()> {
        let added = split(settings)?;
        let replaced = |old: &Given| added.iter().any(|new| new.key == old.key);
        let mut all = added.clone();
        all.extend(self.given.iter().filter(|old| !replaced(old)).cloned());
        all.sort_by_key(|one| row(one.key));
        if let Some((one, reason)) = contradiction(&all) {
            return Err(wrong(&one.text(), reason));
        }
        // The drive's percentages follow it to another drive.
        for old in std::mem::take(&mut self.given) {
            if let Some(percent) = old.percent() {
                self.scale(&old.text(), old.key, 100.0 / percent)?;
            }
        }
        for one in &all {
            let changed = added.iter().any(|new| new.key == one.key);
            if changed || one.percent().is_some() {
                self.set(&one.text(), one.key, &one.value)?;
            }
        }
        self.given = all;
        if !added.is_empty() {
            self.name = with_settings(&self.name, settings);
        }
        self.check()
    }

    fn scale(&mut self, setting: &str, key: &str, by: f64) -> Result<()> {
        let drive = self.description.drives.get_mut(&self.drive);
        match key {
            "latency" => {
                if let Some(drive) = drive {
                    drive.model_mut().scale_latency(by);
                }
            }
            "pci" => {
                let Some(rate) = &mut self.description.pci_bytes_per_s else {
                    return Err(wrong(setting, "this machine has no I/O bus limit"));
                };
                *rate *= by;
            }
            "link" => {
                let numbers = drive.map(Drive::tunable).unwrap_or_default();
                let Some(link) = numbers.into_iter().find(|one| one.name == "link_bytes_per_s")
                else {
                    let drive = &self.drive;
                    let reason =
                        format!("the drive {drive} has no link; see buses=N and pci=PERCENT");
                    return Err(wrong(setting, reason));
                };
                *link.value *= by;
            }
            _ => self.description.processor.speed_up(by),
        }
        Ok(())
    }

    fn set(&mut self, setting: &str, key: &str, value: &str) -> Result<()> {
        let number = |low: u32, high: u32| match value.parse::<u32>() {
            Ok(n) if (low..=high).contains(&n) => Ok(n),
            _ => Err(wrong(setting, format!("give a whole number from {low} to {high}"))),
        };
        let switch = || match value {
            "on" | "yes" | "1" | "true" => Ok(true),
            "off" | "no" | "0" | "false" => Ok(false),
            _ => Err(wrong(setting, "give on or off")),
        };
        let size = || parse_size(value).map_err(|reason| wrong(setting, reason));
        match key {
            "drive" => {
                if !self.description.drives.contains_key(value) {
                    let known: Vec<&str> =
                        self.description.drives.keys().map(String::as_str).collect();
                    return Err(wrong(
                        setting,
                        format!(
                            "{} has no such drive; it has {}",
                            self.description.name,
                            known.join(", ")
                        ),
                    ));
                }
                value.clone_into(&mut self.drive);
            }
            "disks" => self.disks = number(1, 64)?,
            "buses" => self.buses = number(1, 16)?,
            "wce" => self.wce = switch()?,
            "stripe" => self.stripe = size()?,
            "raid" => {
                self.volume = match value {
                    "0" => Kind::Stripe,
                    "1" => Kind::Mirror,
                    "5" => Kind::Raid5,
                    "10" => Kind::Raid10,
                    _ => return Err(wrong(setting, "give 0, 1, 5 or 10")),
                }
            }
            "start" => self.start = size()?,
            "failed" => self.failed = Some(number(0, 63)?),
            "rebuild" => self.rebuild = switch()?,
            "parity" => {
                self.volume = Kind::Raid5;
                self.maker = match value {
                    "host" => Maker::Host,
                    "array" => Maker::Array,
                    _ => return Err(wrong(setting, "give host or array")),
                };
            }
            "striping" => {
                self.maker = [Maker::Host, Maker::Adapter, Maker::Array]
                    .into_iter()
                    .find(|maker| maker.name() == value)
                    .ok_or_else(|| wrong(setting, "give host, adapter or array"))?;
            }
            "ramcache" => {
                let policy = self.ram_cache.map_or(WritePolicy::Back, |(_, policy)| policy);
                self.ram_cache = Some((size()?, policy)).filter(|(bytes, _)| *bytes > 0);
            }
            "ramwrite" => {
                let policy = match value {
                    "back" => WritePolicy::Back,
                    "through" => WritePolicy::Through,
                    _ => return Err(wrong(setting, "give back or through")),
                };
                if let Some(cache) = &mut self.ram_cache {
                    cache.1 = policy;
                }
            }
            "lastaccess" => self.last_access = switch()?,
            "temporary" => self.temporary = switch()?,
            "shape" => {
                let reason =
                    "give events, routines or port; threads that wait are the engine 'threads'";
                self.shape = Shape::named(value).ok_or_else(|| wrong(setting, reason))?;
            }
            "latency" | "pci" | "processor" | "link" => {
                self.scale(setting, key, f64::from(number(1, 10_000)?) / 100.0)?;
            }
            "memory" => {
                let fs = &mut self.description.file_system;
                let bytes = size()?;
                if bytes < 4 * fs.unit_bytes {
                    return Err(wrong(
                        setting,
                        format!("give {} bytes or more", 4 * fs.unit_bytes),
                    ));
                }
                let dirty = fs.dirty_bytes as f64 / fs.cache_bytes as f64;
                fs.cache_bytes = bytes;
                fs.dirty_bytes = ((bytes as f64 * dirty) as u64).max(fs.unit_bytes);
            }
            "clients" => self.clients = number(1, 1024)?,
            "readahead" => self.description.file_system.read_ahead_units = number(0, 4096)?,
            _ => return Err(unknown(setting)),
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.clients > 1 && !self.drive().model().serves_clients() {
            let reason = format!(
                "the drive {} has one computer; only a server over a network (nas) has several",
                self.drive
            );
            return Err(wrong(&format!("clients={}", self.clients), reason));
        }
        if self.buses > self.disks {
            return Err(wrong(
                &format!("buses={}", self.buses),
                format!("only {} disks; give disks={0} or more, or fewer buses", self.disks),
            ));
        }
        if self.stripe < 512 || !self.stripe.is_multiple_of(512) {
            return Err(wrong(
                &format!("stripe={}", self.stripe),
                "the chunk must be a multiple of 512 bytes",
            ));
        }
        if !self.start.is_multiple_of(512) {
            return Err(wrong(
                &format!("start={}", self.start),
                "the offset must be a multiple of 512 bytes",
            ));
        }
        let raid = match self.volume {
            Kind::Stripe => "raid=0",
            Kind::Mirror => "raid=1",
            Kind::Raid5 => "raid=5",
            Kind::Raid10 => "raid=10",
        };
        if !self.volume.takes(self.disks) {
            let (minimum, pairs) = (
                self.volume.min_members(),
                if self.volume == Kind::Raid10 { ", in pairs," } else { "" },
            );
            let reason = format!(
                "it needs {minimum} disks or more{pairs} and there are {}; give disks={minimum} too",
                self.disks
            );
            return Err(wrong(raid, reason));
        }
        if let Some(failed) = self.failed {
            let setting = format!("failed={failed}");
            if failed >= self.disks {
                return Err(wrong(
                    &setting,
                    format!("there are {} disks, counted from 0", self.disks),
                ));
            }
            if self.volume == Kind::Stripe {
                return Err(wrong(
                    &setting,
                    "a stripe (raid=0) without a disk has lost its data; give raid=1, raid=5 or raid=10",
                ));
            }
        } else if self.rebuild {
            return Err(wrong("rebuild=on", "no disk has failed; give failed=DISK too"));
        }
        let on_a_bus = self.drive().model().bus().is_some();
        let has = |key: &str| self.given.iter().find(|one| one.key == key);
        if let Some(buses) = has("buses").filter(|_| !on_a_bus) {
            return Err(wrong(
                &buses.text(),
                format!("the drive {} has no bus; leave out buses", self.drive),
            ));
        }
        if let Some(wce) = has("wce").filter(|_| !matches!(self.drive(), Drive::Disk(_))) {
            return Err(wrong(
                &wce.text(),
                format!("the drive {} has no write cache to switch; leave out wce", self.drive),
            ));
        }
        let made = has("parity").or_else(|| has("striping"));
        if let Some(made) = made.filter(|_| self.maker != Maker::Host && !on_a_bus) {
            return Err(wrong(
                &made.text(),
                format!("the drive {} has no bus; choose a drive on a bus", self.drive),
            ));
        }
        if let Some(striping) = has("striping").filter(|_| self.disks == 1) {
            return Err(wrong(
                &striping.text(),
                "disks=1 has nothing to stripe; give disks=2 or more",
            ));
        }
        Ok(())
    }

    pub fn drive(&self) -> &Drive {
        &self.description.drives[&self.drive]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_a_target() {
        let setup =
            Setup::parse("twin:gateway-1997,drive=st15150w,disks=4,buses=2,wce=off,stripe=64k,raid=5,parity=array")
                .unwrap();
        assert_eq!(
            (setup.drive.as_str(), setup.disks, setup.buses, setup.wce),
            ("st15150w", 4, 2, false)
        );
        assert_eq!((setup.stripe, setup.volume, setup.maker), (65536, Kind::Raid5, Maker::Array));
    }

    #[test]
    fn component_speeds_scale_by_percent() {
        let pci = |text: &str| Setup::parse(text).unwrap().description.pci_bytes_per_s.unwrap();
        assert!((pci("gateway-1997,pci=200") / pci("gateway-1997") - 2.0).abs() < 1e-9);
        let link = |text: &str| {
            let mut setup = Setup::parse(text).unwrap();
            let drive = setup.description.drives.get_mut(&setup.drive).unwrap();
            drive
                .tunable()
                .into_iter()
                .find(|one| one.name == "link_bytes_per_s")
                .map(|one| *one.value)
                .unwrap()
        };
        assert!((link("nas,link=150") / link("nas") - 1.5).abs() < 1e-9);
        let own = Setup::parse("nvme").unwrap().description.processor;
        let fast = Setup::parse("nvme,processor=200").unwrap().description.processor;
        assert!((own.request_us / fast.request_us - 2.0).abs() < 1e-9);
        assert_eq!((own.cores, own.before_percent), (fast.cores, fast.before_percent));
    }

    fn permutations(settings: &[&str]) -> Vec<String> {
        if settings.is_empty() {
            return vec![String::new()];
        }
        let with = |at: usize| {
            let mut rest = settings.to_vec();
            let first = rest.remove(at);
            permutations(&rest).into_iter().map(move |rest| format!(",{first}{rest}"))
        };
        (0..settings.len()).flat_map(with).collect()
    }

    #[test]
    fn the_order_of_settings_has_no_effect() {
        for settings in [
            ["drive=st15150w", "latency=200", "wce=on", "memory=8m"],
            ["ramwrite=through", "ramcache=4m", "stripe=8k", "disks=2"],
            ["parity=array", "raid=5", "disks=4", "failed=1"],
            ["striping=array", "raid=10", "disks=4", "failed=1"],
        ] {
            let parse = |rest: &String| Setup::parse(&format!("gateway-1997{rest}")).unwrap();
            let all: Vec<Setup> = permutations(&settings).iter().map(parse).collect();
            let first = &all[0];
            for other in &all {
                assert_eq!(Setup { name: first.name.clone(), ..other.clone() }, *first);
            }
        }
        let drives = Setup::parse("gateway-1997,latency=200,drive=st34371w").unwrap().description;
        let own = Setup::parse("gateway-1997").unwrap().description;
        assert_eq!(drives.drives["st15150w"], own.drives["st15150w"], "the drive that is not used");
        assert_ne!(drives.drives["st34371w"], own.drives["st34371w"]);
    }

    #[test]
    fn contradictions_name_both_settings_in_any_order() {
        for (settings, words) in [
            (["disks=4", "raid=0", "parity=array"], ["parity=array", "raid=0"]),
            (["disks=4", "raid=1", "parity=host"], ["parity=host", "raid=1"]),
            (["disks=4", "raid=10", "parity=array"], ["parity=array", "raid=10"]),
            (["disks=1", "ramcache=0", "ramwrite=back"], ["ramwrite=back", "ramcache=0"]),
            (["disks=4", "raid=5", "striping=array"], ["striping=array", "raid=5"]),
            (["disks=4", "parity=host", "striping=array"], ["striping=array", "parity=host"]),
            (["disks=2", "raid=1", "striping=adapter"], ["striping=adapter", "raid=1"]),
            (["disks=1", "raid=0", "striping=adapter"], ["striping=adapter", "disks=1"]),
            (["disks=2", "raid=0", "failed=1"], ["failed=1", "raid=0"]),
            (["disks=2", "raid=1", "rebuild=on"], ["rebuild=on", "failed=DISK"]),
            (["wce=on", "disks=2", "wce=off"], ["wce=on", "wce=off"]),
            (["pci=200", "pci=200", "disks=2"], ["pci=200", "leave out one"]),
        ] {
            for order in permutations(&settings) {
                let error = Setup::parse(&format!("gateway-1997{order}")).unwrap_err().to_string();
                assert!(words.iter().all(|word| error.contains(word)), "{order}: {error}");
            }
        }
    }

    #[test]
    fn settings_that_are_applied_later_replace_those_of_the_name() {
        let mut setup = Setup::parse("gateway-1997,latency=200,disks=2,processor=50").unwrap();
        setup.apply("drive=st34371w,disks=4,processor=200").unwrap();
        assert_eq!(setup.name, "gateway-1997,latency=200,disks=4,processor=200,drive=st34371w");
        assert_eq!(setup, Setup::parse(&setup.name).unwrap());
        assert!(setup.apply("parity=array,raid=0").is_err());
        let mut array = Setup::parse("gateway-1997,disks=4,parity=array").unwrap();
        let error = array.apply("raid=0").unwrap_err().to_string();
        assert!(error.contains("parity=array") && error.contains("raid=0"), "{error}");
    }

    #[test]
    fn bad_settings_name_the_value_and_the_fix() {
        for (text, word) in [
            ("nvme,disks=2,buses=2", "ssd has no bus"),
            ("nvme,wce=off", "no write cache to switch"),
            ("gateway-1997,ramwrite=through", "give ramcache=SIZE"),
            ("gateway-1998", "gateway-1997"),
            ("gateway-1997,drive=st9", "st15150w"),
            ("gateway-1997,disks=0", "from 1 to 64"),
            ("gateway-1997,disks=2,buses=3", "fewer buses"),
            ("gateway-1997,stripe=1000", "multiple of 512"),
            ("gateway-1997,raid=5", "3 disks"),
            ("gateway-1997,raid=6", "0, 1, 5 or 10"),
            ("gateway-1997,raid=10,disks=5", "in pairs"),
            ("gateway-1997,raid=1", "2 disks"),
            ("gateway-1997,disks=2,failed=0", "raid=1"),
            ("gateway-1997,disks=2,raid=1,failed=2", "2 disks"),
            ("gateway-1997,disks=2,raid=1,rebuild=on", "failed=DISK"),
            ("gateway-1997,start=100", "multiple of 512"),
            ("gateway-1997,shape=threads", "engine 'threads'"),
            ("nvme,disks=3,raid=5,parity=array", "no bus"),
            ("nvme,disks=3,striping=adapter", "no bus"),
            ("gateway-1997,link=200", "buses=N"),
            ("nvme,pci=200", "no I/O bus"),
            ("nvme,processor=0", "from 1 to 10000"),
            ("gateway-1997,colour=red", "wce=on|off"),
            ("gateway-1997,wce", "setting=value"),
            ("no/such/file.toml", "no/such/file.toml"),
        ] {
            let error = Setup::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
