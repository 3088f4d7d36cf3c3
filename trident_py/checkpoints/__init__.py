"""Checkpoints: who has one, what is in that of a `LocalCluster`, and how one becomes the other cluster's."""
