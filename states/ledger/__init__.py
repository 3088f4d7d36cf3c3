"""The ledger of a state: one protocol (`states.ledger.protocol`) over the stores that implement
`states.ledger.store.LedgerStore`. Described in docs/protocol.md."""
