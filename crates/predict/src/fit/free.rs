//! Which numbers of a machine a fit may move.

use twin::Setup;
use twin::description::Drive;

/// A number that may be moved.
pub(super) struct Free<'a> {
    /// Its path in the machine file.
    pub path: String,
    /// The number.
    pub value: &'a mut f64,
    /// Numbers that mean the same here and move with it.
    along: Vec<&'a mut f64>,
}

/// The least that a number starts from when it is moved: a time of zero could not grow by a factor.
const LEAST: f64 = 0.05;

impl Free<'_> {
    /// Multiplies the number, and those that go with it.
    pub fn scale(self, factor: f64) {
        *self.value = self.value.max(LEAST) * factor;
        for other in self.along {
            *other = *self.value;
        }
    }
}

/// The free numbers of a machine: its drive's, and what a request costs the processor.
pub(super) fn free(setup: &mut Setup) -> Vec<Free<'_>> {
    let drive = setup.drive.clone();
    let tunable = setup.description.drives.get_mut(&setup.drive).map(Drive::tunable).unwrap_or_default();
    let mut free: Vec<Free<'_>> = tunable
        .into_iter()
        .map(|number| Free {
            path: format!("drives.{drive}.{}", number.name),
            value: number.value,
            along: number.along,
        })
        .collect();
    let value = &mut setup.description.processor.request_us;
    free.push(Free { path: "processor.request_us".to_owned(), value, along: Vec::new() });
    free
}
