"""What is measured: reference graphs, models, and numbers for their inputs."""
