//! Results on disk: JSON in and out, schema versions.
