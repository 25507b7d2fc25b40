"""Random PyTensor graphs of the ops that have rules, with values for their inputs."""
