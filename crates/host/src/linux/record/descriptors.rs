//! The open file and position of recorded descriptors.

use super::identity::{self, Found};
use apptrace::{Index, Kind, OpenFile};
use std::collections::HashMap;

pub(super) type OpenId = usize;

#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) file: Index,
    pub(super) kind: Kind,
    pub(super) flags: OpenFile,
    pub(super) position: Option<u64>,
}

#[derive(Clone, Copy)]
struct Descriptor {
    id: OpenId,
    ends_at_exec: bool,
}

type Table = HashMap<i32, Descriptor>;

#[derive(Default)]
pub(super) struct Descriptors {
    open_files: Vec<Open>,
    tables: HashMap<u32, Table>,
}

impl Descriptors {
    pub(super) fn get(&self, table: u32, descriptor: i32) -> Option<OpenId> {
        Some(self.tables.get(&table)?.get(&descriptor)?.id)
    }

    pub(super) fn open_file(&mut self, id: OpenId) -> &mut Open {
        &mut self.open_files[id]
    }

    pub(super) fn open(
        &mut self,
        table: u32,
        descriptor: i32,
        open: Open,
        ends_at_exec: bool,
    ) -> OpenId {
        let id = self.open_files.len();
        self.open_files.push(open);
        let descriptors = self.tables.entry(table).or_default();
        descriptors.insert(descriptor, Descriptor { id, ends_at_exec });
        id
    }

    pub(super) fn end_at_exec(&mut self, table: u32, descriptor: i32, ends: bool) {
        let table = self.tables.get_mut(&table);
        if let Some(descriptor) = table.and_then(|table| table.get_mut(&descriptor)) {
            descriptor.ends_at_exec = ends;
        }
    }

    pub(super) fn exec(&mut self, table: u32, process: u32) {
        let mut left = self.tables.get(&table).cloned().unwrap_or_default();
        left.retain(|_, descriptor| !descriptor.ends_at_exec);
        self.tables.insert(process, left);
        self.compact();
    }

    pub(super) fn close(&mut self, table: u32, descriptors: std::ops::RangeInclusive<i32>) {
        let Some(table) = self.tables.get_mut(&table) else { return };
        if descriptors.start() == descriptors.end() {
            table.remove(descriptors.start());
        } else {
            table.retain(|descriptor, _| !descriptors.contains(descriptor));
        }
        self.compact();
    }

    pub(super) fn duplicate(&mut self, table: u32, from: i32, to: i32, ends_at_exec: bool) {
        let id = self.get(table, from);
        let table = self.tables.entry(table).or_default();
        match id {
            Some(id) => table.insert(to, Descriptor { id, ends_at_exec }),
            None => table.remove(&to),
        };
    }

    pub(super) fn fork(&mut self, parent: u32, child: u32) {
        let table = self.tables.get(&parent).cloned().unwrap_or_default();
        self.tables.insert(child, table);
    }

    pub(super) fn exit(&mut self, table: u32) {
        self.tables.remove(&table);
        self.compact();
    }

    fn compact(&mut self) {
        let used: usize = self.tables.values().map(HashMap::len).sum();
        if self.open_files.len() < 1024 + 4 * used {
            return;
        }
        let mut numbers = HashMap::new();
        let mut kept = Vec::new();
        for Descriptor { id, .. } in self.tables.values_mut().flat_map(HashMap::values_mut) {
            *id = *numbers.entry(*id).or_insert_with(|| {
                kept.push(self.open_files[*id].clone());
                kept.len() - 1
            });
        }
        self.open_files = kept;
    }

    pub(super) fn present(process: u32) -> Vec<(i32, Found)> {
        let names = std::path::PathBuf::from(format!("/proc/{process}/fd"));
        ::files::entries(&names)
            .filter_map(|name| {
                let descriptor = name.to_str()?.parse().ok()?;
                Some((descriptor, identity::look(process as i32, descriptor)?))
            })
            .collect()
    }
}
