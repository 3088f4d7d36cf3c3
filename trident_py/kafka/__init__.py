"""Kafka: the spout that reads it, and the clients that the states of `states.kafka` share with it."""

from __future__ import annotations
