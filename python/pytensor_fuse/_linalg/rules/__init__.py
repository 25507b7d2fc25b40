"""The rules: functions of a graph and a node that return replacements, or None.

`_activation/passes/linalg/table.py` lists them with their positions among PyTensor's passes.
"""
