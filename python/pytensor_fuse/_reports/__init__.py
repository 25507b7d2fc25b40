"""Common parts of all reports: pages, tables, and the formatting of numbers and sizes."""
