//! The user's prices.

use super::ChosenVolume;
use crate::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Prices per month, in the user's currency.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    pub gib: f64,
    /// Price of each request per second above those included.
    pub iops: f64,
    pub included_iops: f64,
    /// Price of each MiB/s above those included.
    pub mib_per_s: f64,
    pub included_mib_per_s: f64,
}

#[derive(Debug, Clone, Default)]
pub struct Prices(BTreeMap<String, Price>);

impl Prices {
    /// Reads `[gp3]` tables with `gib = 0.08` and so on.
    pub fn parse(file: &str, text: &str) -> Result<Prices> {
        let wrong = |reason: String| Error::Setting { setting: file.to_owned(), reason };
        let prices: BTreeMap<String, Price> =
            toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        for (kind, price) in &prices {
            let Price { gib, iops, included_iops, mib_per_s, included_mib_per_s } = *price;
            let all = [gib, iops, included_iops, mib_per_s, included_mib_per_s];
            if all.iter().any(|one| !(one.is_finite() && *one >= 0.0)) {
                return Err(wrong(format!("the prices of {kind} must not be negative")));
            }
        }
        Ok(Prices(prices))
    }

    /// `None` without a price for the kind.
    pub fn month(&self, volume: &ChosenVolume) -> Option<f64> {
        let price = self.0.get(&volume.kind)?;
        let mib_per_s = volume.bytes_per_s / f64::from(1 << 20);
        Some(
            price.gib * volume.gib as f64
                + price.iops * (volume.iops - price.included_iops).max(0.0)
                + price.mib_per_s * (mib_per_s - price.included_mib_per_s).max(0.0),
        )
    }
}
