"""Pages in a headless browser."""
