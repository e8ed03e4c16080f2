"""From a grid file to the cells that are left: reading, typing, expanding, packing. Neither torch nor Ray."""
