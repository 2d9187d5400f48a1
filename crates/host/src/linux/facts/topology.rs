//! How processors form cores, memory nodes and sockets.

use super::{Roots, names, number};
use std::collections::BTreeSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topology {
    pub cores: u32,
    pub nodes: u32,
    pub sockets: u32,
}

/// Online processors only; `None` if unknown.
pub fn topology(roots: &Roots) -> Option<Topology> {
    let system = roots.sys.join("devices/system");
    let numbered = |name: &String, prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok())
    };
    let (mut cores, mut sockets) = (BTreeSet::new(), BTreeSet::new());
    for name in names(system.join("cpu")).iter().filter(|name| numbered(name, "cpu")) {
        let of = |fact: &str| number(system.join("cpu").join(name).join("topology").join(fact));
        if let (Some(core), Some(socket)) = (of("core_id"), of("physical_package_id")) {
            cores.insert((socket, core));
            sockets.insert(socket);
        }
    }
    let nodes = names(system.join("node")).iter().filter(|name| numbered(name, "node")).count();
    (!cores.is_empty()).then_some(Topology {
        cores: cores.len() as u32,
        // A kernel without NUMA has one node and does not list it.
        nodes: nodes.max(1) as u32,
        sockets: sockets.len() as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn threads_of_a_core_count_once() {
        let directory = tempfile::tempdir().unwrap();
        let roots = Roots::below(directory.path());
        assert_eq!(topology(&roots), None);
        for (processor, core, socket) in [(0, 0, 0), (1, 1, 0), (2, 0, 0), (3, 0, 1)] {
            let at = roots.sys.join(format!("devices/system/cpu/cpu{processor}/topology"));
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("core_id"), format!("{core}\n")).unwrap();
            fs::write(at.join("physical_package_id"), format!("{socket}\n")).unwrap();
        }
        fs::create_dir_all(roots.sys.join("devices/system/cpu/cpufreq")).unwrap();
        assert_eq!(topology(&roots), Some(Topology { cores: 3, nodes: 1, sockets: 2 }));
        for name in ["node0", "node1", "power"] {
            fs::create_dir_all(roots.sys.join("devices/system/node").join(name)).unwrap();
        }
        assert_eq!(topology(&roots).map(|found| found.nodes), Some(2));
    }
}
