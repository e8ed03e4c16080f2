"""Single sentences of GECOBench on the page."""
