"""A run for programs: lines of JSON on stdout, in a file, and in place of the log."""
