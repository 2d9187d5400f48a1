//! The values that a place may have.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// A number from 0, or -1, which the kernel shows for a throttle that is off.
    Number,
    Words(&'static [&'static str]),
    Name,
    Processors,
}

impl Values {
    pub(super) fn allow(self, value: &str) -> bool {
        let only = |more: &str| {
            !value.is_empty() && value.chars().all(|c| c.is_ascii_digit() || more.contains(c))
        };
        match self {
            Values::Number => value == "-1" || value.parse::<u64>().is_ok(),
            Values::Words(words) => words.contains(&value),
            Values::Name => {
                !value.is_empty()
                    && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
            }
            Values::Processors => only(",-"),
        }
    }

    pub(super) fn what(self) -> String {
        match self {
            Values::Number => "a whole number".into(),
            Values::Words(words) => format!("one of {}", words.join(", ")),
            Values::Name => "a name of letters and digits".into(),
            Values::Processors => "a list of processors".into(),
        }
    }
}
