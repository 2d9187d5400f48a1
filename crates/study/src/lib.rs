//! Experiments as data, half-power points, cost models, findings.
