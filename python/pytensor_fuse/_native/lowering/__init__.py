"""From PyTensor's graphs to loop programs: what each op means."""
