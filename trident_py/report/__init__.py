"""What can be said of a topology: its guarantees, its picture, its progress."""
