"""The ledger: what is on disk of finished cells, the only truth about what is done."""

from geco_ray.ledger.ledger import Ledger
from geco_ray.ledger.record import DamagedCell, Record

__all__ = ["DamagedCell", "Ledger", "Record"]
