"""From a cell to its committed result: the glue between the two libraries and the ledger. Nothing here knows Ray."""
