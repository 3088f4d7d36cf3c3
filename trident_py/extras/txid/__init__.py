"""`trident txid`: what checkpoint and states remember of each txid, with the driver alive or dead."""
