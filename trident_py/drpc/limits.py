"""Default limits of DRPC: requests that run and wait at a time, and a caller's timeout. And the
variable of the environment with the one token of server and client."""

TIMEOUT_SECONDS = 600.0
THREADS = 16
QUEUE = 128
TOKEN = "TRIDENT_DRPC_TOKEN"
