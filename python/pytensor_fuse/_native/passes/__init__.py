"""Programs from programs: loops fused, dead code left out, buffers placed."""
