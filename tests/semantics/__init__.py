"""What Trident promises, behaviour by behaviour, through the public API only."""
