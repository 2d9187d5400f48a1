//! The settings after a machine's name:
//! `gateway-1997,drive=st15150w,disks=4,buses=2,wce=off,stripe=64k,raid=5,parity=host`.

use crate::description::{Description, Drive};
use crate::ram_cache::WritePolicy;
use crate::volume::{Kind, Parity};
use crate::{Error, Result, Shape, preset};
use machine::units::parse_size;

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
    /// The drives' write caches are enabled.
    pub wce: bool,
    pub stripe: u64,
    pub volume: Kind,
    pub failed: Option<u32>,
    /// The failed member's replacement is rebuilt while the volume is in use.
    pub rebuild: bool,
    /// Bytes from the start of a row of chunks to the first byte of each file.
    pub start: u64,
    pub ram_cache: Option<(u64, WritePolicy)>,
    /// Buffered writes stay in memory, as for temporary files.
    pub temporary: bool,
    /// How a program with several requests outstanding per thread learns of completions.
    pub shape: Shape,
}

pub const SETTINGS: [(&str, &str); 20] = [
    ("drive=NAME", "drive model, one of the machine's"),
    ("disks=N", "how many, as one volume"),
    ("buses=N", "number of buses, filled in disk order"),
    ("wce=on|off", "the drives' write caches"),
    ("stripe=SIZE", "chunk size in bytes"),
    ("start=SIZE", "offset of files from the start of a row of chunks"),
    ("raid=0|1|5|10", "stripe, mirror, stripe with rotating parity, or stripe over mirrored pairs"),
    ("parity=host|array", "who computes parity: the processor, or an array with buses of its own"),
    ("failed=DISK", "a disk of a mirror, of RAID 5 or of RAID 10 has failed (the first is 0)"),
    ("rebuild=on|off", "rebuild the failed disk while the volume is in use"),
    ("ramcache=SIZE", "RAM cache in front of the volume (0: no cache)"),
    ("ramwrite=back|through", "when the RAM cache calls a write done"),
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

impl Setup {
    /// A machine with its default settings.
    pub fn of(description: Description) -> Self {
        let volume = description.volume.clone();
        Setup {
            name: description.name.clone(),
            drive: volume.drive,
            disks: volume.disks,
            buses: volume.buses,
            wce: volume.wce,
            stripe: volume.stripe_bytes,
            volume: Kind::Stripe,
            failed: None,
            rebuild: false,
            start: 0,
            ram_cache: None,
            temporary: false,
            shape: Shape::default(),
            description,
        }
    }

    /// Parses `NAME[,SETTING=VALUE]...`, without a trailing `#FILE`.
    ///
    /// # Errors
    /// An unknown machine or setting, a value out of range, or settings that contradict each other.
    pub fn parse(text: &str) -> Result<Self> {
        let (text, _) = split_file(text.strip_prefix("twin:").unwrap_or(text));
        let (name, settings) = text.split_once(',').unwrap_or((text, ""));
        let mut setup = Setup::of(preset::load(name.trim())?);
        setup.apply(settings)?;
        setup.name = text.to_owned();
        Ok(setup)
    }

    /// Applies `SETTING=VALUE[,SETTING=VALUE]...`.
    pub fn apply(&mut self, settings: &str) -> Result<()> {
        for setting in settings.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
            let (key, value) = setting
                .split_once('=')
                .ok_or_else(|| wrong(setting, "write it as setting=value"))?;
            self.set(setting, key.trim(), value.trim())?;
        }
        if !settings.is_empty() {
            self.name = format!("{},{settings}", self.name);
        }
        self.check()
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
                self.volume = match (value, self.volume) {
                    ("0", _) => Kind::Stripe,
                    ("1", _) => Kind::Mirror,
                    ("5", Kind::Raid5(parity)) => Kind::Raid5(parity),
                    ("5", _) => Kind::Raid5(Parity::Host),
                    ("10", _) => Kind::Raid10,
                    _ => return Err(wrong(setting, "give 0, 1, 5 or 10")),
                }
            }
            "start" => self.start = size()?,
            "failed" => self.failed = Some(number(0, 63)?),
            "rebuild" => self.rebuild = switch()?,
            "parity" => {
                self.volume = Kind::Raid5(match value {
                    "host" => Parity::Host,
                    "array" => Parity::Array,
                    _ => return Err(wrong(setting, "give host or array")),
                });
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
                let Some((bytes, _)) = self.ram_cache else {
                    return Err(wrong(setting, "give ramcache=SIZE before it"));
                };
                self.ram_cache = Some((bytes, policy));
            }
            "temporary" => self.temporary = switch()?,
            "shape" => {
                let reason =
                    "give events, routines or port; threads that wait are the engine 'threads'";
                self.shape = Shape::named(value).ok_or_else(|| wrong(setting, reason))?;
            }
            "latency" => {
                let by = f64::from(number(1, 10_000)?) / 100.0;
                if let Some(drive) = self.description.drives.get_mut(&self.drive) {
                    drive.model_mut().scale_latency(by);
                }
            }
            "pci" => {
                let Some(rate) = &mut self.description.pci_bytes_per_s else {
                    return Err(wrong(setting, "this machine has no I/O bus limit"));
                };
                *rate *= f64::from(number(1, 10_000)?) / 100.0;
            }
            "processor" => {
                self.description.processor.speed_up(f64::from(number(1, 10_000)?) / 100.0)
            }
            "link" => {
                let by = f64::from(number(1, 10_000)?) / 100.0;
                let drive = self.description.drives.get_mut(&self.drive);
                let numbers = drive.map(Drive::tunable).unwrap_or_default();
                let Some(link) = numbers.into_iter().find(|one| one.name == "link_bytes_per_s")
                else {
                    return Err(wrong(
                        setting,
                        "this drive has no link of its own; see buses=N and pci=PERCENT",
                    ));
                };
                *link.value *= by;
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
            "readahead" => self.description.file_system.read_ahead_units = number(0, 4096)?,
            _ => {
                let known: Vec<&str> = SETTINGS.iter().map(|(form, _)| *form).collect();
                return Err(wrong(
                    setting,
                    format!("no such setting; there are {}", known.join(", ")),
                ));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
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
            Kind::Raid5(_) => "raid=5",
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
                    "a stripe without a disk has lost its data; give raid=1, raid=5 or raid=10 too",
                ));
            }
        } else if self.rebuild {
            return Err(wrong("rebuild=on", "no disk has failed; give failed=DISK too"));
        }
        let on_a_bus = self.drive().model().bus().is_some();
        if self.volume == Kind::Raid5(Parity::Array) && !on_a_bus {
            return Err(wrong(
                "parity=array",
                "this drive has no bus for an array to use; choose a drive on a bus",
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
        assert_eq!((setup.stripe, setup.volume), (65536, Kind::Raid5(Parity::Array)));
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

    #[test]
    fn bad_settings_name_the_value_and_the_fix() {
        for (text, word) in [
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
