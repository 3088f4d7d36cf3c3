"""The checkpoint of a component: the log of its batches, in one format on both clusters."""
