//! Records with stable numbers; slots are reused, so memory does not grow with a run's length.

pub struct Slab<T> {
    records: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { records: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub fn insert(&mut self, record: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.records[index as usize] = record;
            return index;
        }
        self.records.push(record);
        (self.records.len() - 1) as u32
    }

    pub fn release(&mut self, index: u32) {
        debug_assert!(!self.free.contains(&index), "record {index} released twice");
        self.free.push(index);
    }

    pub fn clear(&mut self) {
        self.records.clear();
        self.free.clear();
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        &self.records[index as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.records[index as usize]
    }
}
