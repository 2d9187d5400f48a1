//! The buses and links that a disk hangs on, and the rates that they advertise.

use super::{link_name, names, number, text};
use machine::{Layer, LayerKind, Share};
use std::collections::BTreeMap;
use std::path::Path;

/// The links of a disk, from the disk towards the processor.
#[derive(Default)]
pub(super) struct Links {
    pub layers: Vec<Layer>,
    pub warnings: Vec<String>,
}

/// The links above a disk whose own directory in sysfs is `disk` (links resolved).
pub(super) fn links(disk: &Path) -> Links {
    let mut links = Links::default();
    // An NVMe namespace with several paths hangs below its subsystem; each path is a controller linked from there.
    let parent = disk.parent().unwrap_or(disk);
    if file_name(parent).starts_with("nvme-subsys") {
        for controller in
            names(parent).iter().filter(|name| name.starts_with("nvme") && parent.join(name).join("transport").exists())
        {
            if let Ok(path) = parent.join(controller).canonicalize() {
                links.climb(&path);
            }
        }
    } else {
        links.climb(disk);
    }
    links
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

impl Links {
    fn climb(&mut self, from: &Path) {
        // A link shows at both of its ends, and one that is wider than those below it limits nothing.
        let mut pcie_limit = f64::INFINITY;
        for dir in from.ancestors() {
            let name = file_name(dir);
            if name == "devices" {
                break;
            }
            if let Some(transport) =
                text(dir.join("transport")).filter(|transport| transport != "pcie" && dir.join("cntlid").exists())
            {
                self.plain(
                    format!("NVMe over {transport}"),
                    [("device", Some(name)), ("address", text(dir.join("address")))],
                );
            } else if name.starts_with("ata") && name[3..].bytes().all(|digit| digit.is_ascii_digit()) && name.len() > 3
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
                self.plain(bus, [("device", Some(name)), ("driver", link_name(dir.join("driver")))]);
            }
        }
    }

    fn push(&mut self, name: String, rate: Option<f64>, settings: BTreeMap<String, String>) {
        self.layers.push(Layer {
            kind: LayerKind::Link,
            name,
            advertised_bytes_per_s: rate,
            advertised_iops: None,
            settings,
            share: Share::ALL,
        });
    }

    /// A bus that advertises no rate.
    fn plain(&mut self, name: String, details: [(&str, Option<String>); 2]) {
        self.push(name, None, details.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect());
    }

    /// A PCI Express link of a function or bridge, told where it is narrower than all below it. Returns the narrowest
    /// so far.
    fn pcie(&mut self, dir: &Path, narrowest: f64) -> f64 {
        let (Some(speed), Some(width)) = (text(dir.join("current_link_speed")), number(dir.join("current_link_width")))
        else {
            return narrowest;
        };
        let Some(rate) = pcie_lane_bytes_per_s(&speed).map(|lane| lane * width as f64).filter(|&rate| rate > 0.0)
        else {
            return narrowest;
        };
        if rate >= narrowest {
            return narrowest;
        }
        let name = format!("PCIe {} x{width}", pcie_generation(&speed));
        let mut settings = BTreeMap::from([("address".to_owned(), file_name(dir))]);
        for key in ["current_link_speed", "current_link_width", "max_link_speed", "max_link_width"] {
            settings.extend(text(dir.join(key)).map(|value| (key.to_owned(), value)));
        }
        let most =
            text(dir.join("max_link_speed")).zip(number(dir.join("max_link_width"))).and_then(|(speed, width)| {
                Some((
                    pcie_lane_bytes_per_s(&speed)? * width as f64,
                    format!("PCIe {} x{width}", pcie_generation(&speed)),
                ))
            });
        if let Some((_, possible)) = most.filter(|(most, _)| *most > rate * 1.01) {
            self.warnings.push(format!(
                "the link of {} runs as {name} though it could be {possible}: look at the slot, the cable and the link's power management",
                file_name(dir)
            ));
        }
        self.push(name, Some(rate), settings);
        rate
    }

    /// The link between a SATA port and its drive: `/sys/.../ataN/linkM/ata_link/linkM/sata_spd`.
    fn sata(&mut self, port: &Path) {
        for link in names(port).into_iter().filter(|name| name.starts_with("link")) {
            let dir = port.join(&link).join("ata_link").join(&link);
            let Some(speed) = text(dir.join("sata_spd")) else { continue };
            let Some(gbps) = leading_number(&speed) else { continue };
            let mut settings = BTreeMap::from([("sata_spd".to_owned(), speed), ("port".to_owned(), file_name(port))]);
            for key in ["hw_sata_spd_limit", "sata_spd_limit"] {
                settings.extend(text(dir.join(key)).map(|value| (key.to_owned(), value)));
            }
            if let Some(most) =
                text(dir.join("hw_sata_spd_limit")).as_deref().and_then(leading_number).filter(|&most| most > gbps)
            {
                self.warnings.push(format!(
                    "the SATA link of {} runs at {gbps} Gbit/s though the port has {most}: look at the cable",
                    file_name(port)
                ));
            }
            // 8b/10b coding: ten bits on the wire for each byte (Serial ATA specification, all three generations).
            self.push(format!("SATA {gbps} Gbit/s"), Some(gbps * 1e9 / 10.0), settings);
        }
    }

    /// The phys of the SAS port that a disk, or the expander of its enclosure, hangs on; a wide port adds its phys up.
    fn sas(&mut self, device: &Path) {
        let Some(port) = device.parent() else { return };
        let mut rate = 0.0;
        let mut phys = 0;
        let mut settings = BTreeMap::new();
        for phy in names(port).into_iter().filter(|name| name.starts_with("phy-")) {
            let told = text(port.join(&phy).join("sas_phy").join(&phy).join("negotiated_linkrate"));
            let Some(gbps) = told.as_deref().and_then(leading_number) else { continue };
            rate += sas_bytes_per_s(gbps);
            phys += 1;
            settings.extend(told.map(|told| ("negotiated_linkrate".to_owned(), told)));
        }
        if phys > 0 {
            settings.insert("port".into(), file_name(port));
            settings.insert("phys".into(), phys.to_string());
            let linkrate = settings.get("negotiated_linkrate").cloned().unwrap_or_default();
            let width = if phys > 1 { format!(" x{phys}") } else { String::new() };
            self.push(format!("SAS {linkrate}/s{width}"), Some(rate), settings);
        }
    }

    /// A USB device's link to its hub.
    fn usb(&mut self, dir: &Path) {
        let Some(mbps) = text(dir.join("speed")).as_deref().and_then(leading_number) else { return };
        let mut settings =
            BTreeMap::from([("speed_mbit_per_s".to_owned(), mbps.to_string()), ("port".to_owned(), file_name(dir))]);
        settings.extend(text(dir.join("version")).map(|version| ("usb_version".to_owned(), version)));
        if mbps <= 480.0 {
            self.warnings.push(format!(
                "the USB device {} runs at {mbps} Mbit/s: use a USB 3 port and cable if it has USB 3",
                file_name(dir)
            ));
        }
        self.push(format!("USB {mbps} Mbit/s"), Some(usb_bytes_per_s(mbps)), settings);
    }
}

/// The number at the start of `6.0 Gbps`, `12.0 Gbit`, `16.0 GT/s PCIe`.
fn leading_number(text: &str) -> Option<f64> {
    let number = text.split(|c: char| !(c.is_ascii_digit() || c == '.')).next()?;
    number.parse().ok().filter(|&value: &f64| value > 0.0)
}

/// Bytes per second of one lane in one direction, less the line code but not the packets' own overhead: 8b/10b at 2.5
/// and 5 GT/s, 128b/130b at 8, 16 and 32 GT/s (PCI Express Base Specification 5.0, chapter 4); from 64 GT/s, 236 of
/// each FLIT's 256 bytes (Base Specification 6.0).
fn pcie_lane_bytes_per_s(speed: &str) -> Option<f64> {
    let transfers = leading_number(speed)?;
    let coded = match transfers {
        t if t < 8.0 => 8.0 / 10.0,
        t if t < 64.0 => 128.0 / 130.0,
        _ => 236.0 / 256.0,
    };
    Some(transfers * 1e9 * coded / 8.0)
}

/// The generation that people know a speed by.
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

/// 8b/10b up to 12 Gbit/s; 128b/150b (coding and forward error correction) at 22.5 (SAS-4, INCITS 534).
fn sas_bytes_per_s(gbps: f64) -> f64 {
    let coded = if gbps < 22.0 { 8.0 / 10.0 } else { 128.0 / 150.0 };
    gbps * 1e9 * coded / 8.0
}

/// USB 2 has no line code (bit stuffing depends on the data); 5 Gbit/s is 8b/10b, 10 and 20 Gbit/s 128b/132b (USB 3.2
/// specification).
fn usb_bytes_per_s(mbps: f64) -> f64 {
    let coded = match mbps {
        m if m < 5_000.0 => 1.0,
        m if m < 10_000.0 => 8.0 / 10.0,
        _ => 128.0 / 132.0,
    };
    mbps * 1e6 * coded / 8.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advertised_rates_as_the_standards_have_them() {
        let near = |value: f64, wanted: f64| assert!((value / wanted - 1.0).abs() < 0.001, "{value} is not {wanted}");
        near(pcie_lane_bytes_per_s("2.5 GT/s PCIe").unwrap(), 250e6);
        near(pcie_lane_bytes_per_s("8.0 GT/s PCIe").unwrap(), 984.6e6);
        near(4.0 * pcie_lane_bytes_per_s("16.0 GT/s PCIe").unwrap(), 7.877e9);
        near(sas_bytes_per_s(12.0), 1.2e9);
        near(sas_bytes_per_s(22.5), 2.4e9);
        near(usb_bytes_per_s(5000.0), 500e6);
        near(usb_bytes_per_s(480.0), 60e6);
        assert_eq!(pcie_lane_bytes_per_s("Unknown"), None);
        assert_eq!((pcie_generation("32.0 GT/s PCIe"), pcie_generation("2.5 GT/s")), ("5.0", "1.0"));
    }
}
