"""Records appended to topics: the two states, and the conversion of tuples into records."""
