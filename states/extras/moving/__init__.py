"""What moving a running system needs of our states. The rest is in `trident_py.extras.moving`."""
