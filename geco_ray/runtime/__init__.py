"""All that knows Ray: trials, holders, progress, shutdown. Nothing else in the package imports it."""
