//! Looking: terminal tables, HTML with plots, CSV.
