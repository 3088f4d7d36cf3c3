"""Moves a running system from Storm: its code, its positions, its states, and the proof that nothing changed."""
