//! The buses and links above a disk, with advertised rates.

use super::{link_name, names, number, text};
use machine::{Layer, LayerFacts, LayerKind};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Default)]
struct Links {
    layers: Vec<Layer>,
}

pub(super) fn links(disk: &Path) -> Vec<Layer> {
    let mut links = Links::default();
    // A multipath NVMe namespace is below its subsystem, which links to a controller per path.
    let parent = disk.parent().unwrap_or(disk);
    if file_name(parent).starts_with("nvme-subsys") {
        for controller in names(parent)
            .iter()
            .filter(|name| name.starts_with("nvme") && parent.join(name).join("transport").exists())
        {
            if let Ok(path) = parent.join(controller).canonicalize() {
                links.climb(&path);
            }
        }
    } else {
        links.climb(disk);
    }
    links.layers
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

impl Links {
    fn climb(&mut self, from: &Path) {
        // Both ends of a link are listed; a link wider than those below it limits nothing.
        let mut pcie_limit = f64::INFINITY;
        for dir in from.ancestors() {
            let name = file_name(dir);
            if name == "devices" {
                break;
            }
            if let Some(transport) = text(dir.join("transport"))
                .filter(|transport| transport != "pcie" && dir.join("cntlid").exists())
            {
                self.plain(
                    format!("NVMe over {transport}"),
                    [("device", Some(name)), ("address", text(dir.join("address")))],
                );
            } else if name.starts_with("ata")
                && name[3..].bytes().all(|digit| digit.is_ascii_digit())
                && name.len() > 3
            {
                self.sata(dir);
            } else if name.starts_with("end_device-") || name.starts_with("expander-") {
                self.sas(dir);
            } else if dir.join("current_link_speed").exists() {
                pcie_limit = self.pcie(dir, pcie_limit);
            } else if dir.join("speed").exists() && dir.join("bMaxPacketSize0").exists() {
                if !name.starts_with("usb") {
                    self.usb(dir);
                }
            } else if let Some(bus) = link_name(dir.join("subsystem"))
                .filter(|bus| matches!(bus.as_str(), "virtio" | "xen" | "vmbus" | "mmc"))
            {
                let paravirtual = bus != "mmc";
                self.plain(
                    bus,
                    [("device", Some(name)), ("driver", link_name(dir.join("driver")))],
                );
                self.layers
                    .iter_mut()
                    .rev()
                    .take(1)
                    .for_each(|layer| layer.facts.paravirtual = paravirtual);
            }
        }
    }

    fn push(
        &mut self,
        name: String,
        rate: Option<(f64, String)>,
        warning: Option<String>,
        settings: BTreeMap<String, String>,
    ) {
        let (rate, formula) = rate.unzip();
        let facts = LayerFacts { warnings: warning.into_iter().collect(), ..LayerFacts::default() };
        self.layers.push(Layer {
            advertised_bytes_per_s: rate,
            advertised_formula: formula,
            facts,
            settings,
            ..Layer::new(LayerKind::Link, name)
        });
    }

    fn plain(&mut self, name: String, details: [(&str, Option<String>); 2]) {
        self.push(
            name,
            None,
            None,
            details.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect(),
        );
    }

    fn pcie(&mut self, dir: &Path, narrowest: f64) -> f64 {
        let (Some(speed), Some(width)) =
            (text(dir.join("current_link_speed")), number(dir.join("current_link_width")))
        else {
            return narrowest;
        };
        let Some(rate) = pcie_lane_bytes_per_s(&speed)
            .map(|lane| lane * width as f64)
            .filter(|&rate| rate > 0.0)
        else {
            return narrowest;
        };
        if rate >= narrowest {
            return narrowest;
        }
        let name = format!("PCIe {} x{width}", pcie_generation(&speed));
        let mut settings = BTreeMap::from([("address".to_owned(), file_name(dir))]);
        for key in ["current_link_speed", "current_link_width", "max_link_speed", "max_link_width"]
        {
            settings.extend(text(dir.join(key)).map(|value| (key.to_owned(), value)));
        }
        let max = text(dir.join("max_link_speed"))
            .zip(number(dir.join("max_link_width")))
            .and_then(|(speed, width)| {
                Some((
                    pcie_lane_bytes_per_s(&speed)? * width as f64,
                    format!("PCIe {} x{width}", pcie_generation(&speed)),
                ))
            });
        let warning = max.filter(|(max, _)| *max > rate * 1.01).map(|(_, possible)| {
            format!(
                "the link of {} runs as {name} though it could be {possible}: check the slot, the cable and the link's power management",
                file_name(dir)
            )
        });
        let formula = pcie_formula(&speed, width);
        self.push(name, Some((rate, formula)), warning, settings);
        rate
    }

    fn sata(&mut self, port: &Path) {
        for link in names(port).into_iter().filter(|name| name.starts_with("link")) {
            let dir = port.join(&link).join("ata_link").join(&link);
            let Some(speed) = text(dir.join("sata_spd")) else { continue };
            let Some(gbps) = leading_number(&speed) else { continue };
            let mut settings = BTreeMap::from([
                ("sata_spd".to_owned(), speed),
                ("port".to_owned(), file_name(port)),
            ]);
            for key in ["hw_sata_spd_limit", "sata_spd_limit"] {
                settings.extend(text(dir.join(key)).map(|value| (key.to_owned(), value)));
            }
            let max = text(dir.join("hw_sata_spd_limit")).as_deref().and_then(leading_number);
            let warning = max.filter(|&max| max > gbps).map(|max| {
                let port = file_name(port);
                format!("the SATA link of {port} runs at {gbps} Gbit/s though the port has {max}: check the cable")
            });
            // 8b/10b coding: ten bits on the wire per byte (Serial ATA specification, all three
            // generations).
            let rate = (gbps * 1e9 / 10.0, format!("SATA: {gbps} Gbit/s x 8/10"));
            self.push(format!("SATA {gbps} Gbit/s"), Some(rate), warning, settings);
        }
    }

    /// A wide port sums its phys.
    fn sas(&mut self, device: &Path) {
        let Some(port) = device.parent() else { return };
        let mut rate = 0.0;
        let mut phys = 0;
        let mut each = Vec::new();
        let mut slower = None;
        let mut settings = BTreeMap::new();
        for phy in names(port).into_iter().filter(|name| name.starts_with("phy-")) {
            let reported =
                text(port.join(&phy).join("sas_phy").join(&phy).join("negotiated_linkrate"));
            let Some(gbps) = reported.as_deref().and_then(leading_number) else { continue };
            rate += sas_bytes_per_s(gbps);
            phys += 1;
            each.push(gbps);
            settings.extend(reported.map(|reported| ("negotiated_linkrate".to_owned(), reported)));
            let max = text(port.join(&phy).join("sas_phy").join(&phy).join("maximum_linkrate"));
            if let Some(possible) = max.as_deref().and_then(leading_number) {
                slower = slower.or((possible > gbps).then_some((gbps, possible)));
                settings.extend(max.map(|max| ("maximum_linkrate".to_owned(), max)));
            }
        }
        if phys > 0 {
            settings.insert("port".into(), file_name(port));
            settings.insert("phys".into(), phys.to_string());
            let linkrate = settings.get("negotiated_linkrate").cloned().unwrap_or_default();
            let width = if phys > 1 { format!(" x{phys}") } else { String::new() };
            // An expander speaks SATA to a SATA disk; the coding is the same.
            let protocols = text(
                device.join("sas_device").join(file_name(device)).join("target_port_protocols"),
            );
            let kind = if protocols.is_some_and(|reported| reported.trim() == "sata") {
                "SATA"
            } else {
                "SAS"
            };
            let warning = slower.map(|(gbps, possible)| {
                format!(
                    "the {kind} link of {} runs at {gbps} Gbit/s though its phy has {possible}: check the cable, the backplane and the disk",
                    file_name(port)
                )
            });
            let formula = format!("{kind}: {}", all_of(&each));
            self.push(
                format!("{kind} {linkrate}/s{width}"),
                Some((rate, formula)),
                warning,
                settings,
            );
        }
    }

    fn usb(&mut self, dir: &Path) {
        let Some(mbps) = text(dir.join("speed")).as_deref().and_then(leading_number) else {
            return;
        };
        let mut settings = BTreeMap::from([
            ("speed_mbit_per_s".to_owned(), mbps.to_string()),
            ("port".to_owned(), file_name(dir)),
        ]);
        settings
            .extend(text(dir.join("version")).map(|version| ("usb_version".to_owned(), version)));
        let warning = (mbps <= 480.0).then(|| {
            format!(
                "the USB device {} runs at {mbps} Mbit/s: use a USB 3 port and cable if it has USB 3",
                file_name(dir)
            )
        });
        let (coded, text) = usb_code(mbps);
        let rate = (mbps * 1e6 * coded / 8.0, format!("USB: {mbps} Mbit/s{text}"));
        self.push(format!("USB {mbps} Mbit/s"), Some(rate), warning, settings);
    }
}

fn leading_number(text: &str) -> Option<f64> {
    let number = text.split(|c: char| !(c.is_ascii_digit() || c == '.')).next()?;
    number.parse().ok().filter(|&value: &f64| value > 0.0)
}

/// Payload bits per lane bit (PCI Express Base Specification 5.0, chapter 4); from 64 GT/s, 236 of
/// each FLIT's 256 bytes (6.0).
fn pcie_code(transfers: f64) -> (f64, &'static str) {
    match transfers {
        t if t < 8.0 => (8.0 / 10.0, "8/10"),
        t if t < 64.0 => (128.0 / 130.0, "128/130"),
        _ => (236.0 / 256.0, "236/256"),
    }
}

/// One direction, after line code but before packet overhead.
fn pcie_lane_bytes_per_s(speed: &str) -> Option<f64> {
    let transfers = leading_number(speed)?;
    Some(transfers * 1e9 * pcie_code(transfers).0 / 8.0)
}

/// `PCIe 3.0 x4: 8 GT/s x 4 lanes x 128/130`; a transfer is one bit per lane.
fn pcie_formula(speed: &str, width: u64) -> String {
    let transfers = leading_number(speed).unwrap_or(0.0);
    let lanes = if width == 1 { "lane" } else { "lanes" };
    let generation = pcie_generation(speed);
    format!(
        "PCIe {generation} x{width}: {transfers} GT/s x {width} {lanes} x {}",
        pcie_code(transfers).1
    )
}

fn pcie_generation(speed: &str) -> &'static str {
    match leading_number(speed).unwrap_or(0.0) as u32 {
        2 => "1.0",
        5 => "2.0",
        8 => "3.0",
        16 => "4.0",
        32 => "5.0",
        64 => "6.0",
        _ => "of unknown generation",
    }
}

/// Up to 12 Gbit/s 8b/10b; at 22.5, 128b/150b with forward error correction (SAS-4, INCITS 534).
fn sas_code(gbps: f64) -> (f64, &'static str) {
    if gbps < 22.0 { (8.0 / 10.0, "8/10") } else { (128.0 / 150.0, "128/150") }
}

fn sas_bytes_per_s(gbps: f64) -> f64 {
    gbps * 1e9 * sas_code(gbps).0 / 8.0
}

fn all_of(phys: &[f64]) -> String {
    let one = |gbps: f64, count: usize| match count {
        1 => format!("{gbps} Gbit/s x {}", sas_code(gbps).1),
        _ => format!("{gbps} Gbit/s x {count} phys x {}", sas_code(gbps).1),
    };
    let alike = phys.chunk_by(|a, b| a == b).map(|alike| one(alike[0], alike.len()));
    alike.collect::<Vec<_>>().join(" + ")
}

/// USB 2 has no line code (bit stuffing depends on the data); for the others see the USB 3.2
/// specification.
fn usb_code(mbps: f64) -> (f64, &'static str) {
    match mbps {
        m if m < 5_000.0 => (1.0, ""),
        m if m < 10_000.0 => (8.0 / 10.0, " x 8/10"),
        _ => (128.0 / 132.0, " x 128/132"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advertised_rates_as_the_standards_have_them() {
        let near = |value: f64, wanted: f64| {
            assert!((value / wanted - 1.0).abs() < 0.001, "{value} is not {wanted}")
        };
        near(pcie_lane_bytes_per_s("2.5 GT/s PCIe").unwrap(), 250e6);
        near(pcie_lane_bytes_per_s("8.0 GT/s PCIe").unwrap(), 984.6e6);
        near(4.0 * pcie_lane_bytes_per_s("16.0 GT/s PCIe").unwrap(), 7.877e9);
        near(sas_bytes_per_s(12.0), 1.2e9);
        near(sas_bytes_per_s(22.5), 2.4e9);
        near(5000e6 * usb_code(5000.0).0 / 8.0, 500e6);
        assert_eq!((usb_code(480.0), usb_code(10_000.0).1), ((1.0, ""), " x 128/132"));
        assert_eq!(pcie_lane_bytes_per_s("Unknown"), None);
        assert_eq!(pcie_formula("8.0 GT/s PCIe", 4), "PCIe 3.0 x4: 8 GT/s x 4 lanes x 128/130");
        assert_eq!(pcie_formula("2.5 GT/s PCIe", 1), "PCIe 1.0 x1: 2.5 GT/s x 1 lane x 8/10");
        assert_eq!(all_of(&[12.0; 4]), "12 Gbit/s x 4 phys x 8/10");
        assert_eq!(all_of(&[6.0, 12.0]), "6 Gbit/s x 8/10 + 12 Gbit/s x 8/10");
        assert_eq!(
            (pcie_generation("32.0 GT/s PCIe"), pcie_generation("2.5 GT/s")),
            ("5.0", "1.0")
        );
    }
}
