"""Extras: what a topology can do without, a package each. The core finds them by entry point and imports none."""
