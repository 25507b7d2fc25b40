"""Rules for gradients: only the parts that are read are computed."""
