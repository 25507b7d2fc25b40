"""Who is called of an event, in which order, and what comes of it, as PyTensor has it."""

from __future__ import annotations

from typing import Any

import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph

from pytensor_fuse._core import call_listeners
from support.switching import switched

EVENTS = ("on_import", "on_change_input", "on_prune")
behaviours = st.lists(
    st.sampled_from(["hears", "comes", "goes", "brings", "raises", "is deaf"]), max_size=6
)


def make_feature(behaviour: str, number: Any, log: list[Any]) -> Feature:
    """A feature that notes its calls, and may change the list of features when it is called."""

    def called(self: Any, fgraph: Any, *args: Any, **kwargs: Any) -> None:
        log.append((number, args, kwargs))
        match behaviour:
            case "goes":
                fgraph.remove_feature(self)
            case "comes":
                fgraph.remove_feature(self)
                fgraph.attach_feature(self)
                # Only once: it would be called for ever.
                type(self)._feature_callbacks = frozenset()
            case "brings":
                new = make_feature("hears", (number,), log)
                fgraph.attach_feature(new)
            case "raises":
                raise KeyError(number)

    methods: dict[str, Any] = {} if behaviour == "is deaf" else dict.fromkeys(EVENTS, called)
    class_ = type("Told", (Feature,), methods)
    class_._feature_callbacks = frozenset(methods)
    return class_()


def run(program: list[str], events: list[int]) -> list[Any]:
    """What features are told, what is raised, who is left, and whose seconds are counted."""
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    for feature in list(fgraph._features):
        fgraph.remove_feature(feature)
    log: list[Any] = []
    numbers: dict[Any, int] = {}
    for number, behaviour in enumerate(program):
        feature = make_feature(behaviour, number, log)
        fgraph.attach_feature(feature)
        numbers[feature] = number
    for event in events:
        try:
            if event % 2:
                fgraph.execute_callbacks(EVENTS[event % 3], event, reason="why")
            else:
                fgraph.execute_callbacks(EVENTS[event % 3], event)
        except KeyError as error:
            log.append(repr(error))
        log.append([numbers.get(feature, "new") for feature in fgraph._features])
        log.append([numbers.get(one, "new") for one in fgraph.execute_callbacks_times])
        assert all(seconds >= 0 for seconds in fgraph.execute_callbacks_times.values())
    return log


@given(program=behaviours, events=st.lists(st.integers(0, 20), min_size=1, max_size=4))
def test_the_same_are_told(program: Any, events: Any) -> None:
    with switched(accelerators=False):
        expected = run(program, events)
    with switched(accelerators=["graph_edits"]):
        assert run(program, events) == expected


def test_seconds_are_added() -> None:
    log: list[Any] = []
    features = [make_feature("hears", n, log) for n in range(3)]
    seconds = {features[1]: 1000.0}
    last = call_listeners(
        tuple(features[:2]), "on_prune", (None, "node"), {"reason": 1}, features, features, seconds
    )
    assert last is None
    assert log == [(0, ("node",), {"reason": 1}), (1, ("node",), {"reason": 1})]
    assert list(seconds) == [features[1], features[0]]
    assert 0 <= seconds[features[0]] < 10
    assert seconds[features[1]] > 1000.0


def test_nobody_is_called_once_the_list_is_another() -> None:
    log: list[Any] = []
    told = [make_feature("hears", n, log) for n in range(3)]
    assert call_listeners(tuple(told), "on_prune", (None,), None, told, told[:2], {}) == 0
    # Equal lists are the same.
    assert call_listeners(tuple(told), "on_prune", (None,), None, told, list(told), {}) is None
    assert [number for number, *_ in log] == [0, 0, 1, 2]


def test_who_does_not_say_what_it_hears() -> None:
    with pytest.raises(AttributeError, match="_feature_callbacks"):
        call_listeners((object(),), "on_prune", (None,), None, [], [], {})  # type: ignore[arg-type]
