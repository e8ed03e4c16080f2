"""Single rows of a report's page: which are shown, and how they lie in the page as data."""
