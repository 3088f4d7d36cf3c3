"""How many requests run and wait at a time, and for how long a caller waits, unless the conf says otherwise."""

TIMEOUT_SECONDS = 600.0
THREADS = 16
QUEUE = 128
