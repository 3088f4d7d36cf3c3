"""States that a user can do without, found by entry point. The rest of `states` imports none of them."""
