//! A drive's wear, from smartctl (smartmontools) in JSON.

use super::{Roots, block};
use machine::Wear;
use serde_json::Value;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A drive answers faster, unless it sleeps or hangs.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);
/// The answer for one drive has up to 100 KiB.
const MAX_OUTPUT: u64 = 4 << 20;

/// NVM Express Base Specification, "SMART / Health Information".
const NVME_UNIT_BYTES: u64 = 512_000;
/// ATA attributes with total blocks written; 246 is of some makers.
const BLOCKS_WRITTEN: [u64; 2] = [241, 246];
const BLOCK_BYTES: u64 = 512;

pub(crate) fn wear(roots: &Roots, device: &str) -> Option<Wear> {
    let name = block::disk_of_partition(roots, device).unwrap_or_else(|| device.to_owned());
    // Its exit code is a mask of findings; what counts is the document.
    let text = output(Command::new("smartctl").args(["-j", "-x", &format!("/dev/{name}")]))?;
    parse(&name, &text)
}

fn output(command: &mut Command) -> Option<Vec<u8>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let read = child.stdout.take().map(|pipe| {
        std::thread::spawn(move || {
            let mut all = Vec::new();
            pipe.take(MAX_OUTPUT).read_to_end(&mut all).map(|_| all)
        })
    })?;
    if !ends(&mut child) {
        let _ = child.kill();
        let _ = child.wait();
        return None;
    }
    read.join().ok()?.ok()
}

fn ends(child: &mut Child) -> bool {
    let until = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return true,
            Ok(None) if Instant::now() < until => std::thread::sleep(POLL),
            Ok(None) | Err(_) => return false,
        }
    }
}

fn parse(device: &str, text: &[u8]) -> Option<Wear> {
    let all: Value = serde_json::from_slice(text).ok()?;
    let number = |path: &str| all.pointer(path).and_then(Value::as_f64);
    let nvme = "/nvme_smart_health_information_log";
    let units = all.pointer(&format!("{nvme}/data_units_written")).and_then(Value::as_u64);
    let used_percent = number("/endurance_used/current_percent")
        .or_else(|| number(&format!("{nvme}/percentage_used")))
        .or_else(|| number("/scsi_percentage_used_endurance_indicator"))
        .or_else(|| statistic(&all, "Percentage Used Endurance Indicator"));
    let block_bytes =
        all.pointer("/logical_block_size").and_then(Value::as_u64).unwrap_or(BLOCK_BYTES);
    let written_bytes = units
        .map(|units| units.saturating_mul(NVME_UNIT_BYTES))
        .or_else(|| {
            let blocks = statistic(&all, "Logical Sectors Written")? as u64;
            Some(blocks.saturating_mul(block_bytes))
        })
        .or_else(|| Some(attribute(&all, BLOCKS_WRITTEN)?.saturating_mul(BLOCK_BYTES)));
    let wear = Wear {
        device: device.into(),
        model: all
            .get("model_name")
            .and_then(Value::as_str)
            .map(|name| machine::text::printable(name).to_string()),
        used_percent,
        written_bytes,
        temperature_c: number("/temperature/current")
            .or_else(|| number(&format!("{nvme}/temperature"))),
    };
    let told = wear.used_percent.is_some() || wear.written_bytes.is_some();
    (told || wear.temperature_c.is_some()).then_some(wear)
}

fn statistic(all: &Value, name: &str) -> Option<f64> {
    let pages = all.pointer("/ata_device_statistics/pages")?.as_array()?;
    let rows = pages.iter().filter_map(|page| page.get("table")?.as_array()).flatten();
    let mut named = rows.filter(|row| row.get("name").and_then(Value::as_str) == Some(name));
    named.find_map(|row| row.get("value")?.as_f64())
}

fn attribute(all: &Value, ids: [u64; 2]) -> Option<u64> {
    let rows = all.pointer("/ata_smart_attributes/table")?.as_array()?;
    let own = |id: u64| {
        let row = rows.iter().find(|row| row.get("id").and_then(Value::as_u64) == Some(id))?;
        row.pointer("/raw/value")?.as_u64()
    };
    ids.into_iter().find_map(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_nvme_drive_reports_its_wear() {
        let text = br#"{"json_format_version":[1,0],"smartctl":{"version":[7,3],"exit_status":0},
            "device":{"name":"/dev/nvme0n1","protocol":"NVMe"},"model_name":"QLC 1TB",
            "nvme_smart_health_information_log":{"critical_warning":0,"temperature":36,
            "available_spare":100,"percentage_used":7,"data_units_read":81320017,
            "data_units_written":54810233,"power_on_hours":4021},"temperature":{"current":36}}"#;
        let found = parse("nvme0n1", text).unwrap();
        assert_eq!(found.used_percent, Some(7.0));
        assert_eq!(found.written_bytes, Some(54_810_233 * 512_000));
        assert_eq!(found.temperature_c, Some(36.0));
        assert!((found.endurance_bytes().unwrap() / 400.9e12 - 1.0).abs() < 0.01);
    }

    #[test]
    fn an_ata_drive_reports_it_by_statistics_or_attributes() {
        let statistics = br#"{"model_name":"SATA SSD","logical_block_size":512,
            "ata_device_statistics":{"pages":[{"number":1,"name":"General Statistics","table":[
            {"offset":24,"name":"Logical Sectors Written","size":6,"value":20000000000}]},
            {"number":7,"name":"Solid State Device Statistics","table":[
            {"offset":8,"name":"Percentage Used Endurance Indicator","size":1,"value":2}]}]},
            "temperature":{"current":31}}"#;
        let found = parse("sda", statistics).unwrap();
        assert_eq!(found.used_percent, Some(2.0));
        assert_eq!(found.written_bytes, Some(20_000_000_000 * 512));
        // Two whole percents say too little about the whole.
        assert_eq!(found.endurance_bytes(), None);
        let attributes = br#"{"ata_smart_attributes":{"revision":1,"table":[
            {"id":9,"name":"Power_On_Hours","value":99,"raw":{"value":812,"string":"812"}},
            {"id":241,"name":"Total_LBAs_Written","value":99,"raw":{"value":1953525168}}]}}"#;
        let found = parse("sdb", attributes).unwrap();
        assert_eq!(found.written_bytes, Some(1_953_525_168 * 512));
        assert_eq!(found.used_percent, None);
    }

    #[test]
    fn what_says_nothing_is_nothing() {
        for text in
            [&b""[..], b"{}", b"[]", br#"{"ata_smart_attributes":7}"#, br#"{"temperature":{}}"#]
        {
            assert_eq!(parse("sda", text), None);
        }
    }
}
