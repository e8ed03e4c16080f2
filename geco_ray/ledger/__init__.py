"""The ledger: what is on disk of finished cells, the only truth about what is done."""

from geco_ray.ledger.ledger import DamagedCell, Ledger, Record

__all__ = ["DamagedCell", "Ledger", "Record"]
