"""Old public names and keywords: each warns once, and leads to the new one."""

from __future__ import annotations

import warnings

import pytensor
import pytensor.tensor as pt
import pytest

import pytensor_fuse
from pytensor_fuse._activation.settings import _warn_of_keywords
from pytensor_fuse._old_names import OLD_NAMES, old_value


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OLD_NAMES:
        monkeypatch.delitem(vars(pytensor_fuse), name, raising=False)
    _warn_of_keywords.cache_clear()


@pytest.mark.parametrize("name", OLD_NAMES)
def test_an_old_name_warns_once_and_names_the_new_one(name: str) -> None:
    with pytest.warns(FutureWarning, match=rf"pytensor_fuse.{name} will .* use ") as said:
        value = getattr(pytensor_fuse, name)
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(pytensor_fuse, name) is value
    assert name not in pytensor_fuse.__all__


def test_what_is_said_to_be_written_instead_exists() -> None:
    x = pt.vector("x")
    names = {"pytensor_fuse": pytensor_fuse, "f": pytensor.function([x], x + 1)}
    names["a"] = names["b"] = names["f"].maker.fgraph
    for _, instead in OLD_NAMES.values():
        eval(instead, names)


def test_old_functions_answer() -> None:
    x = pt.vector("x")
    f = pytensor.function([x], x + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert old_value("explain_joins")(f) == pytensor_fuse.explain(f, "joins")
        assert old_value("why_missed")(f) == pytensor_fuse.explain(f, "cache")
        assert old_value("is_enabled")("joins") is pytensor_fuse.status()["joins"].is_on
        assert old_value("is_enabled")("accelerators:clones") in (True, False)
        assert old_value("same_graph")(([x], [x]), ([x], [x]))
        with pytest.raises(ValueError, match="no feature is called 'speed'"):
            old_value("is_enabled")("speed")
        with old_value("cached")(False):
            assert not pytensor_fuse.status()["cache"].is_on


def test_no_such_name() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'explain_everything'"):
        pytensor_fuse.explain_everything  # noqa: B018


def test_keywords_warn_once_and_work() -> None:
    everything = set(pytensor_fuse.status())

    def on() -> set[str]:
        return {name for name, feature in pytensor_fuse.status().items() if feature.is_on}

    with pytest.warns(FutureWarning, match="features as keywords") as said:
        block = pytensor_fuse.enabled(joins=False)
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with block:
            assert on() == everything - {"joins"}
            with pytensor_fuse.enabled(False, **dict.fromkeys(everything - {"cache"}, False)):
                assert on() == everything - {"joins", "cache"}
            pytensor_fuse.enable(accelerators=["clones"], native=False)
            assert on() == everything - {"native"}
            parts = pytensor_fuse.status()["accelerators"].parts.values()
            assert [part.name for part in parts if part.is_on] == ["clones"]
            pytensor_fuse.disable(**dict.fromkeys(everything - {"joins"}, False))
            assert on() == everything - {"native", "joins"}


def test_names_and_keywords_do_not_mix() -> None:
    with pytest.raises(TypeError, match="without the old keywords"):
        pytensor_fuse.enable("joins", cache=False)
