"""The extra ``state_types``: `trident states`."""
