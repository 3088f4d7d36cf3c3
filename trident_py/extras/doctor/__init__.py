"""The check of a cluster before a start, and `trident doctor` (docs/doctor.md)."""
