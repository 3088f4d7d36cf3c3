"""Where the time of a batch goes: `trident profile`, and the setting ``topology.profile``."""
