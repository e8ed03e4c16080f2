"""What GECOBench's scores say of attributions beside mass accuracy: gains on a reference, gaps, denominators."""
