"""What differs between databases: `base` is the interface, a package for each database has its parts."""
