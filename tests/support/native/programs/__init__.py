"""Random loop programs with inputs."""
