//! Facts that identify a system.

use crate::document::Results;
use machine::{MachineFacts, TargetFacts};
use std::collections::BTreeMap;

const FREE: &str = "free_percent";

/// Space comes and goes; a file system slows down when it is nearly full.
fn free(percent: &str) -> Option<&'static str> {
    Some(match percent.parse::<f64>().ok()? {
        free if free >= 20.0 => "20 or more",
        free if free >= 10.0 => "10 to 20",
        free if free >= 5.0 => "5 to 10",
        _ => "under 5",
    })
}

/// Equal if nothing that could affect a result changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fingerprint {
    facts: BTreeMap<String, String>,
}

impl Fingerprint {
    pub fn of(results: &Results) -> Fingerprint {
        Fingerprint::of_facts(&results.machine, &results.target, &results.program.version)
    }

    pub fn of_facts(machine: &MachineFacts, target: &TargetFacts, version: &str) -> Fingerprint {
        let mut facts = BTreeMap::new();
        let mut add = |name: &str, value: String| drop(facts.insert(name.to_string(), value));
        add("machine", machine.name.clone());
        add("system", machine.system.clone());
        add("processor", machine.processor.clone());
        add("processors", machine.processors.to_string());
        add("memory_bytes", machine.memory_bytes.to_string());
        add("virtualization", machine.virtualization.clone().unwrap_or_default());
        add("halfpower", version.to_owned());
        for (name, value) in &machine.settings {
            add(name, value.clone());
        }
        for (place, layer) in target.layers.iter().enumerate() {
            let kind = format!("{:?}", layer.kind).to_lowercase();
            let name = |setting: &str| format!("layer {place} {kind} {setting}");
            add(&name("name"), layer.name.clone());
            for (setting, value) in &layer.settings {
                let known = if setting == FREE { free(value) } else { None };
                add(&name(setting), known.map_or_else(|| value.clone(), str::to_owned));
            }
        }
        Fingerprint { facts }
    }

    /// Common facts appear once, others under each arm's name.
    pub fn of_both(a: Fingerprint, b: Fingerprint) -> Fingerprint {
        let mut facts = BTreeMap::new();
        for (own, other, arm) in [(&a, &b, "a"), (&b, &a, "b")] {
            for (name, value) in &own.facts {
                let shared = other.facts.get(name) == Some(value);
                facts.insert(
                    if shared { name.clone() } else { format!("{arm}: {name}") },
                    value.clone(),
                );
            }
        }
        Fingerprint { facts }
    }

    /// Empty if there are two machines.
    pub(super) fn machine(&self) -> &str {
        self.facts.get("machine").map_or("", String::as_str)
    }

    /// A hash (FNV-1a, 64 bits).
    pub fn text(&self) -> String {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for byte in self.facts_json().bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        format!("{hash:016x}")
    }

    pub(super) fn facts_json(&self) -> String {
        serde_json::to_string(&self.facts).unwrap_or_default()
    }

    pub(super) fn from_facts_json(text: &str) -> Fingerprint {
        Fingerprint { facts: serde_json::from_str(text).unwrap_or_default() }
    }
}

/// Such as `read_ahead_kb: 128 -> 4`.
pub fn difference(before: &Fingerprint, after: &Fingerprint) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> =
        before.facts.keys().chain(after.facts.keys()).collect();
    let value = |of: &Fingerprint, name: &String| {
        of.facts.get(name).cloned().unwrap_or_else(|| "none".into())
    };
    names
        .into_iter()
        .map(|name| (name, value(before, name), value(after, name)))
        .filter(|(_, before, after)| before != after)
        .map(|(name, before, after)| format!("{name}: {before} -> {after}"))
        .collect()
}
