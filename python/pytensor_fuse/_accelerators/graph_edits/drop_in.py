"""Edits of a FunctionGraph, one input at a time, with less overhead than PyTensor's.

The changes and their order, the events and their arguments, the notes in the tags of nodes and the
errors are the same. Three costs of PyTensor are left out: a copy of the set of all variables for
each import, calls of callbacks that do nothing, and the name of the rewriter, formatted again for
each node.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Apply, AtomicVariable
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.utils import MissingInputError

from pytensor_fuse._core import call_listeners, remove_reader
from pytensor_fuse._pytensor.compat.packages import package_of
from pytensor_fuse._pytensor.patching.drop_ins import DropIn, Together

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable

    from pytensor_fuse._pytensor.patching.patches import Patch

_clock = time.perf_counter

# The empty callbacks of the base class. A feature that overrides one is called.
_SILENT = {
    name: vars(Feature)[name]
    for name in ("on_import", "on_change_input", "on_prune", "on_validate")
}
_NO_METHOD = object()
_stock_remove_feature: Any = FunctionGraph.remove_feature

# For longer lists, a call of Rust is faster than comparisons in Python.
_FEW = 3

# `Scratchpad` has a `__getattribute__` in Python.
_attribute = object.__getattribute__


class _Listeners:
    """The listeners of an event, valid while a graph has these features.

    Empty callbacks that features of PyTensor and of this package inherit are left out. Third-party
    features are always called: their classes may get another method.

    Attributes
    ----------
    features
        All features.
    called
        Those to call.
    places
        Their places among all.
    silent
        The attributes of those that are left out, which may get a method of their own.
    """

    __slots__ = ("called", "features", "places", "silent")

    def __init__(self, features: list[Feature], name: str) -> None:
        self.features = features[:]
        called: list[tuple[int, Feature]] = []
        self.silent: list[dict[str, Any]] = []
        silent = _SILENT.get(name, _NO_METHOD)
        for place, feature in enumerate(features):
            class_ = type(feature)
            if name not in class_._feature_callbacks:
                if not _is_known(class_):
                    called.append((place, feature))
            elif (
                _is_known(class_)
                and getattr(class_, name, None) is silent
                and name not in feature.__dict__
            ):
                self.silent.append(feature.__dict__)
            else:
                called.append((place, feature))

        self.places = [place for place, _ in called]
        self.called: tuple[Feature, ...] = tuple(feature for _, feature in called)

    def are_these(self, features: list[Feature], name: str) -> bool:
        """Whether these are still the listeners."""
        # Lists compare items by identity first.
        if self.features != features:
            return False
        for own in self.silent:  # noqa: SIM110 - a generator takes twice the time
            if name in own:
                return False
        return True


class _Kept(dict[str, _Listeners]):
    """Listeners by event. They are not copied with a graph."""

    def __reduce__(self) -> Any:
        return dict, ()


_KEPT = "_pytensor_fuse_listeners"


def _is_known(class_: type) -> bool:
    return package_of(class_.__module__) in ("pytensor", "pytensor_fuse")


def execute_callbacks(self: Any, name: str, *args: Any, **kwargs: Any) -> None:
    """Do as `FunctionGraph.execute_callbacks`; methods that do nothing are not called."""
    start = _clock()
    own = self.__dict__
    features = self._features
    kept = own.get(_KEPT)
    # That of a graph that was unpickled is another dict.
    if type(kept) is not _Kept:
        kept = own[_KEPT] = _Kept()
    listeners = kept.get(name)
    if listeners is None or not listeners.are_these(features, name):
        listeners = kept[name] = _Listeners(features, name)
    called = listeners.called
    if called:
        last = call_listeners(
            called,
            name,
            (self, *args),
            kwargs or None,
            features,
            listeners.features,
            self.execute_callbacks_times,
        )
        if last is not None:
            # Features have come or gone: the walk goes on in what is there now.
            _call_others(self, name, listeners.places[last] + 1, args, kwargs)
    self.execute_callbacks_time += _clock() - start


def remove_feature(self: Any, feature: Feature) -> None:
    """Do as `FunctionGraph.remove_feature`, and discard the listeners, which hold the feature."""
    self.__dict__.pop(_KEPT, None)
    _stock_remove_feature(self, feature)


def _call_others(
    self: Any, name: str, place: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Call the features from a place on, as `FunctionGraph.execute_callbacks` does."""
    features = self._features
    while place < len(features):
        feature = features[place]
        if name in type(feature)._feature_callbacks:
            start = _clock()
            getattr(feature, name)(self, *args, **kwargs)
            self.execute_callbacks_times[feature] += _clock() - start
        place += 1


def _new_nodes(outputs: list[Variable[Any, Any]], known: set[Any]) -> list[Apply[Any]]:
    """Return the nodes that `toposort` gives where ``known`` are the blockers, in its order."""
    computed: set[Any] = set()
    todo = list(outputs)
    nodes: list[Apply[Any]] = []
    while todo:
        current = todo.pop()
        node = current.owner
        if node is None or current in known or current in computed:
            continue
        missing = [
            i for i in node.inputs if i.owner is not None and i not in known and i not in computed
        ]
        if missing:
            todo.append(current)
            todo.extend(missing)
        else:
            nodes.append(node)
            computed.update(node.outputs)
    return nodes


def import_node(
    self: Any,
    apply_node: Apply[Any],
    check: bool = True,
    reason: str | None = None,
    import_missing: bool = False,
) -> None:
    """Do as `FunctionGraph.import_node`."""
    variables = self.variables
    clients = self.clients
    apply_nodes = self.apply_nodes
    graph_inputs = self.inputs
    text: str | None = None
    for node in _new_nodes(apply_node.outputs, variables):
        inputs = node.inputs
        if check:
            for var in inputs:
                if (
                    var.owner is None
                    and not isinstance(var, AtomicVariable)
                    and var not in graph_inputs
                ):
                    if import_missing:
                        graph_inputs.append(var)
                        clients.setdefault(var, [])
                    else:
                        error_msg = (
                            f"Input {inputs.index(var)} ({var})"
                            " of the graph (indices start "
                            f"from 0), used to compute {node}, was not "
                            "provided and not given a value. Use the "
                            "PyTensor flag exception_verbosity='high', "
                            "for more information on this error."
                        )
                        raise MissingInputError(error_msg, variable=var)
        if text is None:
            text = str(reason)
        apply_nodes.add(node)
        tag = _attribute(node.tag, "__dict__")
        if "imported_by" in tag:
            tag["imported_by"].append(text)
        else:
            tag["imported_by"] = [text]
        for output in node.outputs:
            if output not in clients:
                clients[output] = []
            variables.add(output)
        for i, inp in enumerate(inputs):
            if inp not in variables:
                clients.setdefault(inp, [])
                variables.add(inp)
            clients[inp].append((node, i))
        self.execute_callbacks("on_import", node, reason)


def remove_client(
    self: Any,
    var: Variable[Any, Any],
    client_to_remove: tuple[Apply[Any], int],
    reason: str | None = None,
    remove_if_empty: bool = False,
) -> None:
    """Do as `FunctionGraph.remove_client`."""
    clients = self.clients
    removal_stack = [(var, client_to_remove)]
    while removal_stack:
        var, client_to_remove = removal_stack.pop()
        try:
            var_clients: Any = clients[var]
            reader, position = client_to_remove
            # A variable with many clients has a long list; `remove` compares its pairs in Python.
            if not (
                type(reader) is Apply
                and type(var_clients) is list
                and len(var_clients) > _FEW
                and remove_reader(var_clients, reader, position)
            ):
                var_clients.remove(client_to_remove)
        except ValueError:
            var_clients = None
        if var_clients:
            continue
        apply_node: Any = var.owner
        if apply_node is None:
            self.variables.remove(var)
            continue
        outputs = apply_node.outputs
        for output in outputs:
            if clients[output]:
                break
        else:
            tag = _attribute(apply_node.tag, "__dict__")
            if "removed_by" in tag:
                tag["removed_by"].append(str(reason))
            else:
                tag["removed_by"] = [str(reason)]
            self.apply_nodes.remove(apply_node)
            self.variables.difference_update(outputs)
            self.execute_callbacks("on_prune", apply_node, reason)
            removal_stack.extend(
                [(in_var, (apply_node, i)) for i, in_var in enumerate(apply_node.inputs)]
            )
            if remove_if_empty:
                del clients[var]


def patch() -> Patch:
    """Return the patch."""
    return Together(
        *(
            DropIn(FunctionGraph, drop_in.__name__, drop_in)
            for drop_in in (execute_callbacks, import_node, remove_client, remove_feature)
        )
    )
