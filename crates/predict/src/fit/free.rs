//! The numbers that a fit may change.

use twin::Setup;
use twin::description::Drive;

pub(super) struct Free<'a> {
    /// In the machine file.
    pub path: String,
    pub value: &'a mut f64,
    along: Vec<&'a mut f64>,
}

/// A time of zero could not grow by a factor.
const MIN_START: f64 = 0.05;

impl Free<'_> {
    pub fn scale(self, factor: f64) {
        *self.value = self.value.max(MIN_START) * factor;
        for other in self.along {
            *other = *self.value;
        }
    }
}

pub(super) fn free(setup: &mut Setup) -> Vec<Free<'_>> {
    let drive = setup.drive.clone();
    let tunable =
        setup.description.drives.get_mut(&setup.drive).map(Drive::tunable).unwrap_or_default();
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
