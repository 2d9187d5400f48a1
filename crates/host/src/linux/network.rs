use super::facts::Roots;
use machine::NetworkLink;
use std::path::Path;

/// Loopback and most virtual links have no known speed.
pub(crate) fn links(roots: &Roots) -> Vec<NetworkLink> {
    let all = std::fs::read_dir(roots.sys.join("class/net")).into_iter().flatten().flatten();
    let mut links: Vec<NetworkLink> = all
        .filter_map(|entry| link(&entry.path(), entry.file_name().to_string_lossy().into()))
        .collect();
    links.sort_by(|a, b| a.name.cmp(&b.name));
    links
}

fn link(directory: &Path, name: String) -> Option<NetworkLink> {
    // The speed is -1 or unreadable if it is not known.
    let number =
        |file: &str| std::fs::read_to_string(directory.join(file)).ok()?.trim().parse::<u64>().ok();
    let megabits = number("speed").filter(|&speed| speed > 0 && speed < u64::from(u32::MAX))?;
    Some(NetworkLink {
        name,
        received_bytes: number("statistics/rx_bytes")?,
        sent_bytes: number("statistics/tx_bytes")?,
        speed_bytes_per_s: megabits * 125_000,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn links_of_unknown_speed_are_left_out() {
        let tree = tempfile::tempdir().unwrap();
        let make = |name: &str, speed: &str| {
            let directory = tree.path().join("class/net").join(name);
            fs::create_dir_all(directory.join("statistics")).unwrap();
            fs::write(directory.join("speed"), speed).unwrap();
            fs::write(directory.join("statistics/rx_bytes"), "1000\n").unwrap();
            fs::write(directory.join("statistics/tx_bytes"), "20\n").unwrap();
        };
        make("eth1", "10000\n");
        make("eth0", "1000\n");
        make("wlan0", "-1\n");
        make("odd0", "4294967295\n");
        let found = links(&Roots { sys: tree.path().into(), ..Roots::default() });
        let names: Vec<&str> = found.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names, ["eth0", "eth1"]);
        let NetworkLink { received_bytes, sent_bytes, speed_bytes_per_s, .. } = found[0];
        assert_eq!((received_bytes, sent_bytes, speed_bytes_per_s), (1000, 20, 125_000_000));
    }
}
