"""Loop programs and graphs as machine code, and what they are compared with."""
