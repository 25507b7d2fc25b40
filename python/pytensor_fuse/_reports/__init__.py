"""What all reports share: pages, tables, the texts of numbers and sizes."""
