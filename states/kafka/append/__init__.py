"""Records appended to topics: the two states, and how tuples become records."""
