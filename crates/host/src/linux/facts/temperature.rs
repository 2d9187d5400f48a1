use super::{Roots, block};
use std::fs;

/// The highest in hwmon (drives: modules nvme and drivetemp).
pub(crate) fn celsius(roots: &Roots, device: &str) -> Option<f64> {
    let name = block::disk_of_partition(roots, device).unwrap_or_else(|| device.to_owned());
    let device = roots.sys.join("block").join(name).join("device");
    let sensors = [device.join("hwmon"), device.clone()];
    let inputs = sensors.iter().filter_map(|place| fs::read_dir(place).ok()).flatten().flatten();
    inputs
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("hwmon"))
        .filter_map(|entry| fs::read_to_string(entry.path().join("temp1_input")).ok())
        .filter_map(|text| text.trim().parse::<f64>().ok())
        .map(|millidegrees| millidegrees / 1000.0)
        .reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drives_sensor_is_read() {
        let tree = tempfile::tempdir().unwrap();
        let roots = Roots { sys: tree.path().into(), ..Roots::default() };
        for (drive, at, value) in
            [("nvme0n1", "device/hwmon3", "41850\n"), ("sda", "device/hwmon/hwmon1", "33000\n")]
        {
            let sensor = tree.path().join("block").join(drive).join(at);
            fs::create_dir_all(&sensor).unwrap();
            fs::write(sensor.join("temp1_input"), value).unwrap();
        }
        assert_eq!(celsius(&roots, "nvme0n1"), Some(41.85));
        assert_eq!(celsius(&roots, "sda"), Some(33.0));
        assert_eq!(celsius(&roots, "vda"), None);
    }
}
