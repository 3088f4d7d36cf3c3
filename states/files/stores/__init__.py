"""The file systems that a FileState writes to, each behind the interface `base.FileStore`."""
