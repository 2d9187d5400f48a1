//! This computer: sessions through the kernel, allocation states, what lies under a path.
