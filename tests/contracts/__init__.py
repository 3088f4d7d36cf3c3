"""What every state and every database proves, and the drivers and workers that the tests of states run."""
