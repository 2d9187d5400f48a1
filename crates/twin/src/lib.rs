//! Simulated computers in virtual time: disks, buses, caches, processor; presets and calibration.
