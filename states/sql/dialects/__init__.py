"""The differences between databases: `base` is the interface; each database has a package."""
