"""What every client of a SQL database shares: how its sessions are pinned, and what error codes mean."""
