"""How to measure: turns of both sides, new processes, memory, and tables of figures."""
