use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The wear of a drive, as the drive reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wear {
    /// Name of the block device.
    pub device: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The share of the drive's endurance that is used, in percent; may exceed 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<f64>,
    /// All bytes that hosts have written to the drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Temperature of the drive in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
}

impl Wear {
    /// Computes the life in written bytes. Figures are whole percents, so the first ones imply
    /// nothing.
    pub fn endurance_bytes(&self) -> Option<f64> {
        const ENOUGH_PERCENT: f64 = 3.0;
        let used = self.used_percent.filter(|used| *used >= ENOUGH_PERCENT)?;
        Some(self.written_bytes? as f64 * 100.0 / used)
    }
}
