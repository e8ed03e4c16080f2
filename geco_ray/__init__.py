"""geco_ray: GECOBench and robust counterfactuals as one distributed experiment grid on Ray.

Importing this package is cheap: neither torch nor Ray is loaded until something is computed.
"""

__version__ = "0.1.0"
