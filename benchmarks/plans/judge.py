"""What is a legal plan of a fusion problem, and what it costs, from the definition.

It shares nothing with the planner.
"""

from __future__ import annotations

from typing import Any

# Kernels and arrays.
Cost = tuple[int, ...]
Clusters = list[list[int]]


class Judge:
    """What is a legal plan of a problem, and what it costs, from the definition."""

    def __init__(self, problem: dict[str, Any]) -> None:
        self.inputs: list[list[int]] = problem["inputs"]
        self.outputs: list[list[int]] = problem["outputs"]
        self.groups: list[int] = problem["groups"]
        self.links: list[int] = problem["links"]
        self.limit: int = problem["max_operands"]
        self.constants = set(problem["constants"])
        self.results = set(problem["results"])
        owner = {v: node for node, made in enumerate(self.outputs) for v in made}
        self.owner = owner
        self.readers: dict[int, set[int]] = {}
        self.before: list[set[int]] = []
        for node, read in enumerate(self.inputs):
            self.before.append({owner[v] for v in read if v in owner})
            for variable in read:
                self.readers.setdefault(variable, set()).add(node)
        for earlier, later in problem["orderings"]:
            self.before[later].add(earlier)

    def operands(self, kernel: set[int]) -> tuple[int, set[int], set[int]]:
        """Return how many operands a kernel has, and the arrays that it reads and writes."""
        made = {v for node in kernel for v in self.outputs[node]}
        read = {v for node in kernel for v in self.inputs[node]} - made
        left = {v for v in made if v in self.results or self.readers.get(v, set()) - kernel}
        return len(read) + len(left), read - self.constants, left

    def is_connected(self, kernel: set[int]) -> bool:
        """Return whether data or operands that bring siblings together connect the nodes."""
        (first, *_) = sorted(kernel)
        reached, stack = {first}, [first]
        while stack:
            node = stack.pop()
            near = {self.owner[v] for v in self.inputs[node] if v in self.owner}
            for made in self.outputs[node]:
                near |= self.readers.get(made, set())
            for read in self.inputs[node]:
                if self.links[read] == self.groups[node]:
                    near |= self.readers[read]
            fresh = (near & kernel) - reached
            reached |= fresh
            stack += sorted(fresh)
        return reached == kernel

    def is_acyclic(self, clusters: Clusters) -> bool:
        """Return whether the kernels and all other nodes can be put in an order."""
        name = list(range(len(self.inputs)))
        for cluster in clusters:
            for node in cluster:
                name[node] = min(cluster)
        waits: dict[int, set[int]] = {block: set() for block in name}
        for node, before in enumerate(self.before):
            waits[name[node]] |= {name[other] for other in before} - {name[node]}
        while True:
            free = {block for block, others in waits.items() if not others}
            if not free:
                return not waits
            waits = {block: others - free for block, others in waits.items() if others}

    def kernels(self, clusters: Clusters) -> list[set[int]]:
        """Return the kernels of a legal plan, those of one node among them.

        Raises
        ------
        ValueError
            If the plan is not legal; says why.
        """
        fused = [node for cluster in clusters for node in cluster]
        if len(fused) != len(set(fused)):
            raise ValueError("a node is in two kernels")
        for cluster in clusters:
            groups = {self.groups[node] for node in cluster}
            if len(groups) != 1 or -1 in groups:
                raise ValueError(f"{cluster} has the groups {sorted(groups)}")
            n_operands, _, _ = self.operands(set(cluster))
            if len(cluster) > 1 and n_operands > self.limit:
                raise ValueError(f"{cluster} has {n_operands} operands")
            if not self.is_connected(set(cluster)):
                raise ValueError(f"{cluster} is not connected")
        if not self.is_acyclic(clusters):
            raise ValueError("the kernels make a cycle")
        alone = set(range(len(self.groups))) - set(fused)
        return [set(c) for c in clusters] + [{n} for n in alone if self.groups[n] >= 0]

    def cost(self, clusters: Clusters) -> tuple[int, int]:
        """Return the kernels and arrays of a legal plan; raises as `kernels` does."""
        kernels = self.kernels(clusters)
        moved = [self.operands(kernel)[1:] for kernel in kernels]
        return len(kernels), sum(len(read) + len(written) for read, written in moved)
