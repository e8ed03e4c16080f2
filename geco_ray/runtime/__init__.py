"""All that knows Ray: trials, actors, progress, shutdown. Nothing else in the package imports it."""
