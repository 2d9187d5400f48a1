//! Documented limits of public cloud volumes, as simulated machines.

use crate::{Error, Result};
use machine::units::{GIB, parse_size};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use twin::{Setup, preset};

const BUILT_IN: &str = include_str!("../../catalogue/volumes.toml");

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Rate {
    per_gib: f64,
    min: f64,
    max: f64,
    /// Rates, each from this size in GiB on.
    steps: Vec<(u64, f64)>,
    /// The user may choose up to the maximum.
    chosen: bool,
    /// Maximum per GiB, if the user may choose.
    chosen_per_gib: Option<f64>,
    /// Maximum per request per second, if the user may choose.
    chosen_per_iops: Option<f64>,
}

impl Rate {
    fn included(&self, gib: u64) -> f64 {
        let step = self.steps.iter().rfind(|(from, _)| *from <= gib).map_or(0.0, |(_, rate)| *rate);
        (self.per_gib * gib as f64).max(self.min).max(step).min(self.max)
    }

    /// Returns `None` if the size alone decides.
    fn most(&self, gib: u64, iops: f64) -> Option<f64> {
        let bounded = self.chosen_per_gib.map(|per| per * gib as f64);
        let bounded = bounded.or(self.chosen_per_iops.map(|per| per * iops));
        let bounded = bounded.or(self.chosen.then_some(self.max))?;
        Some(bounded.min(self.max).max(self.included(gib)))
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tier {
    name: String,
    gib: u64,
    iops: f64,
    bytes_per_s: f64,
    #[serde(default)]
    burst: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Burst {
    iops: Option<f64>,
    credit_requests: f64,
    bytes_per_s_per_gib: f64,
    max_bytes_per_s: Option<f64>,
    credit_bytes_per_gib: f64,
    /// The length of a full burst, in place of credits.
    lasts_s: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogueVolume {
    pub about: String,
    /// The page that documents the limits, with its date.
    pub source: String,
    gib: [u64; 2],
    request_bytes: u64,
    #[serde(default)]
    iops: Rate,
    #[serde(default)]
    bytes_per_s: Rate,
    #[serde(default)]
    tiers: Vec<Tier>,
    burst: Option<Burst>,
    /// The limits are a Linux control group's, which also counts flushes and each journal block.
    #[serde(default)]
    throttle: bool,
    read_us: f64,
    write_us: f64,
}

#[derive(Debug, Clone)]
pub struct Catalogue(BTreeMap<String, CatalogueVolume>);

#[derive(Debug, Clone, PartialEq)]
pub struct ChosenVolume {
    /// `gp3,size=500g,iops=6000`.
    pub name: String,
    pub kind: String,
    pub source: String,
    pub gib: u64,
    pub iops: f64,
    pub bytes_per_s: f64,
    /// The most at this size; `None` if the size alone decides.
    pub most_iops: Option<f64>,
    burst_iops: f64,
    credit_requests: f64,
    burst_bytes_per_s: f64,
    credit_bytes: f64,
    request_bytes: u64,
    throttle: bool,
    read_us: f64,
    write_us: f64,
    about: String,
}

fn wrong(setting: &str, reason: impl Into<String>) -> Error {
    Error::Setting { setting: setting.to_owned(), reason: reason.into() }
}

impl Catalogue {
    pub fn built_in() -> Result<Catalogue> {
        let mut catalogue = Catalogue(BTreeMap::new());
        catalogue.extend("the catalogue", BUILT_IN)?;
        Ok(catalogue)
    }

    /// Replaces volumes of the same name.
    pub fn extend(&mut self, file: &str, text: &str) -> Result<()> {
        let added: BTreeMap<String, CatalogueVolume> =
            toml::from_str(text).map_err(|error| wrong(file, error.to_string()))?;
        for (name, volume) in &added {
            let [min, max] = volume.gib;
            let rates = [&volume.iops, &volume.bytes_per_s];
            let rated = !volume.tiers.is_empty() || rates.iter().all(|rate| rate.max > 0.0);
            if min == 0 || min > max || !rated || volume.request_bytes == 0 {
                let why = "needs gib = [min, max], request_bytes, and a max of iops and bytes_per_s or tiers";
                return Err(wrong(file, format!("volume {name} {why}")));
            }
        }
        self.0.extend(added);
        Ok(())
    }

    pub fn volumes(&self) -> impl Iterator<Item = (&str, &CatalogueVolume)> {
        self.0.iter().map(|(name, volume)| (name.as_str(), volume))
    }

    /// Ignores settings after the name.
    pub fn has(&self, text: &str) -> bool {
        self.0.contains_key(text.split(',').next().unwrap_or(text).trim())
    }

    /// By `NAME[,size=SIZE][,iops=N][,throughput=RATE]`; the default size has at least `needed`
    /// bytes.
    pub fn choose(&self, text: &str, needed: u64) -> Result<ChosenVolume> {
        let mut parts = text.split(',').map(str::trim);
        let kind = parts.next().unwrap_or("");
        let volume = self.0.get(kind).ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            wrong(text, format!("unknown volume; there are {}", known.join(", ")))
        })?;
        let (mut gib, mut iops, mut bytes_per_s) = (None, None, None);
        for part in parts {
            let rate = |text: &str| parse_size(text).map(|rate| rate as f64);
            match part.split_once('=') {
                Some(("size", size)) => {
                    let bytes = parse_size(size).map_err(|why| wrong(part, why))?;
                    gib = Some(bytes.div_ceil(GIB));
                }
                Some(("iops", rate)) => {
                    let number = rate.parse::<u32>();
                    let number = number.map_err(|_| wrong(part, "not a number of requests"))?;
                    iops = Some(f64::from(number));
                }
                Some(("throughput", text)) => {
                    bytes_per_s = Some(rate(text).map_err(|why| wrong(part, why))?);
                }
                _ => return Err(wrong(part, "unknown; give size=SIZE, iops=N or throughput=RATE")),
            }
        }
        let [min, max] = volume.gib;
        // Usual volumes are larger than the trace's part of them.
        let wanted = gib.unwrap_or_else(|| needed.div_ceil(GIB).max(100));
        if wanted > max || wanted < min && gib.is_some() {
            return Err(wrong(text, format!("{wanted} GiB; {kind} has from {min} to {max} GiB")));
        }
        let gib = wanted.max(min);
        if needed > gib * GIB {
            return Err(wrong(text, format!("{gib} GiB are too small for the trace's files")));
        }
        volume.rated(kind, gib, iops, bytes_per_s)
    }
}

impl CatalogueVolume {
    fn rated(
        &self,
        kind: &str,
        gib: u64,
        iops: Option<f64>,
        bytes_per_s: Option<f64>,
    ) -> Result<ChosenVolume> {
        let tier = self.tiers.iter().find(|tier| tier.gib >= gib);
        let (own_iops, own_bytes, most_iops, bursts, name) = match tier {
            Some(tier) => {
                let name = format!("{kind} {}", tier.name);
                (tier.iops, tier.bytes_per_s, None, tier.burst, name)
            }
            None => {
                let most = self.iops.most(gib, 0.0);
                (self.iops.included(gib), self.bytes_per_s.included(gib), most, true, kind.into())
            }
        };
        let within = |what: &str, asked: Option<f64>, own: f64, most: Option<f64>| match asked {
            None => Ok(own),
            Some(rate) if rate > 0.0 && rate <= most.unwrap_or(own) => Ok(rate),
            Some(rate) => Err(wrong(
                &format!("{what}={rate}"),
                format!("{kind} of {gib} GiB has at most {}", most.unwrap_or(own)),
            )),
        };
        let iops = within("iops", iops, own_iops, most_iops)?;
        let max_bytes = self.bytes_per_s.most(gib, iops).filter(|_| tier.is_none());
        let bytes_per_s = within("throughput", bytes_per_s, own_bytes, max_bytes)?;
        let burst = self.burst.clone().filter(|_| bursts).unwrap_or_default();
        let burst_iops = burst.iops.unwrap_or(iops).max(iops);
        let per_size = burst.bytes_per_s_per_gib * gib as f64;
        let burst_bytes = if per_size > 0.0 { per_size } else { f64::INFINITY };
        let burst_bytes = burst.max_bytes_per_s.map_or(bytes_per_s, |max| burst_bytes.min(max));
        let burst_bytes = burst_bytes.max(bytes_per_s);
        let (mut credit_requests, mut credit_bytes) =
            (burst.credit_requests, burst.credit_bytes_per_gib * gib as f64);
        if let Some(lasts) = burst.lasts_s {
            credit_requests = (burst_iops - iops) * lasts;
            credit_bytes = (burst_bytes - bytes_per_s) * lasts;
        }
        Ok(ChosenVolume {
            name: format!("{name}, {gib} GiB, {iops:.0} IOPS"),
            kind: kind.to_owned(),
            source: self.source.clone(),
            gib: tier.map_or(gib, |tier| tier.gib),
            iops,
            bytes_per_s,
            most_iops,
            burst_iops,
            credit_requests,
            burst_bytes_per_s: burst_bytes,
            credit_bytes,
            request_bytes: self.request_bytes,
            throttle: self.throttle,
            read_us: self.read_us,
            write_us: self.write_us,
            about: self.about.clone(),
        })
    }
}

impl ChosenVolume {
    /// The preset `cloud` with this volume.
    pub fn setup(&self) -> Result<Setup> {
        let mut text = format!(
            "name = \"{}\"\nbase = \"cloud\"\nabout = {:?}\n[volume]\ndrive = \"chosen\"\n[drives.chosen]\nkind = \"cloud\"\nabout = {:?}\n",
            self.kind, self.about, self.about
        );
        if self.throttle {
            text += "throttle = true\n";
        }
        let numbers = [
            ("capacity_bytes", (self.gib * GIB) as f64),
            ("iops", self.iops),
            ("burst_iops", self.burst_iops),
            ("credit_requests", self.credit_requests),
            ("request_bytes", self.request_bytes as f64),
            ("bytes_per_s", self.bytes_per_s),
            ("burst_bytes_per_s", self.burst_bytes_per_s),
            ("credit_bytes", self.credit_bytes),
            ("read_us", self.read_us),
            ("write_us", self.write_us),
            // One request moves at most as fast as the whole volume does.
            ("stream_bytes_per_s", self.burst_bytes_per_s.max(800e6)),
            ("queue", 128.0),
        ];
        for (name, value) in numbers {
            let whole = matches!(name, "capacity_bytes" | "request_bytes" | "queue");
            // Writing to a String cannot fail.
            let _ = if whole {
                writeln!(text, "{name} = {value:.0}")
            } else {
                writeln!(text, "{name} = {value:.3}")
            };
        }
        let _ = write!(
            text,
            "[sources]\n\"drives.chosen\" = {:?}\n\"volume\" = \"chosen\"\n",
            self.source
        );
        let mut setup = Setup::of(preset::parse(&self.kind, &text)?);
        setup.name = self.name.clone();
        Ok(setup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_limits_follow_the_size() {
        let catalogue = Catalogue::built_in().unwrap();
        for (text, iops, mb) in [
            ("gp2,size=100g", 300.0, 134.2),
            ("gp2,size=1000g", 3000.0, 262.1),
            ("gp3,size=500g", 3000.0, 131.1),
            ("gp3,size=500g,iops=6000,throughput=500m", 6000.0, 524.3),
            ("pd-ssd,size=500g", 15_000.0, 251.7),
            ("premium-ssd,size=200g", 1100.0, 125.0),
            ("premium-ssd-v2,size=160g,iops=80000", 80_000.0, 125.0),
            ("st1,size=1024g", 500.0, 41.9),
        ] {
            let chosen = catalogue.choose(text, 1 << 30).unwrap();
            assert!((chosen.bytes_per_s / 1e6 - mb).abs() < 0.1, "{text}: {chosen:?}");
            assert_eq!(chosen.iops, iops, "{text}");
            let setup = chosen.setup().unwrap();
            assert_eq!(setup.drive, "chosen");
        }
    }

    #[test]
    fn what_a_volume_cannot_be_is_refused() {
        let mut catalogue = Catalogue::built_in().unwrap();
        for (text, word) in [
            ("gp9", "unknown volume; there are gp2, gp3"),
            ("gp3,size=4g,iops=6000", "at most 3000"),
            ("gp2,iops=6000", "at most 300"),
            ("io2,size=100g,iops=200000", "at most 100000"),
            ("gp3,colour=red", "give size=SIZE"),
            ("st1,size=1g", "from 125 to 16384 GiB"),
            ("gp3,throughput=1g", "at most 786432000"),
        ] {
            let error = catalogue.choose(text, 1 << 30).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(catalogue.choose("gp3,size=1g", 2 << 30).is_err());
        assert!(catalogue.extend("mine", "[fast]\nabout = 1").is_err());
        let mine = "[fast]\nabout = \"mine\"\nsource = \"measured\"\ngib = [1, 100]\nrequest_bytes = 4096\niops = { min = 10, max = 10 }\nbytes_per_s = { min = 1e6, max = 1e6 }\nread_us = 1\nwrite_us = 1\n";
        catalogue.extend("mine", mine).unwrap();
        assert_eq!(catalogue.choose("fast", 1).unwrap().iops, 10.0);
    }
}
