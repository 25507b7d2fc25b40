"""Blocks of `enabled`, within each other and in several threads, restore what was before them."""

import threading

import pytest
from pytensor.compile.mode import optdb
from pytensor.tensor.rewriting.elemwise import FusionOptimizer

import pytensor_fuse
import pytensor_fuse._activation.switch as switch_module
from _activation.entries import contents, registered, rewrite, switch
from pytensor_fuse._activation.passes.fusion import FusionRewriter
from pytensor_fuse._activation.settings import layers, requested
from pytensor_fuse._activation.units import UNITS
from support.effort import IS_DEEP

pytestmark = pytest.mark.usefixtures("restore_fusion")


@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize("inside", [True, False])
def test_enabled_restores(outside, inside):
    switch(outside)
    with pytensor_fuse.enabled(inside):
        assert pytensor_fuse.status()["fusion"].is_on is inside
        with pytensor_fuse.enabled(not inside):
            assert pytensor_fuse.status()["fusion"].is_on is not inside
        assert pytensor_fuse.status()["fusion"].is_on is inside
    assert pytensor_fuse.status()["fusion"].is_on is outside


@pytest.mark.parametrize("outside", [True, False])
def test_enabled_restores_when_raised_through(outside):
    switch(outside)
    with pytest.raises(KeyboardInterrupt), pytensor_fuse.enabled(not outside):
        raise KeyboardInterrupt
    assert pytensor_fuse.status()["fusion"].is_on is outside


def test_enabled_is_on_by_default_and_decorates():
    pytensor_fuse.disable()

    @pytensor_fuse.enabled()
    def inside():
        return pytensor_fuse.status()["fusion"].is_on

    assert inside()
    assert inside()
    assert not pytensor_fuse.status()["fusion"].is_on


def test_calls_within_a_block_end_with_it():
    pytensor_fuse.enable()
    with pytensor_fuse.enabled(False):
        pytensor_fuse.enable()
        assert pytensor_fuse.status()["fusion"].is_on
        pytensor_fuse.disable()
        assert not pytensor_fuse.status()["fusion"].is_on
    assert pytensor_fuse.status()["fusion"].is_on


def test_blocks_that_overlap_restore_the_state_before_both():
    pytensor_fuse.enable()
    first, second = pytensor_fuse.enabled(False), pytensor_fuse.enabled(False)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not pytensor_fuse.status()["fusion"].is_on
    second.__exit__(None, None, None)
    assert pytensor_fuse.status()["fusion"].is_on


def test_of_blocks_that_overlap_the_latest_that_names_a_feature_decides():
    pytensor_fuse.enable()
    first, second = pytensor_fuse.enabled(False, "joins"), pytensor_fuse.enabled(False, "cache")
    first.__enter__()
    second.__enter__()
    assert not pytensor_fuse.status()["joins"].is_on
    first.__exit__(None, None, None)
    assert pytensor_fuse.status()["joins"].is_on
    assert not pytensor_fuse.status()["cache"].is_on
    second.__exit__(None, None, None)
    assert pytensor_fuse.status()["cache"].is_on


def test_switches_within_a_block_last_as_long_as_the_block_of_their_own_thread():
    pytensor_fuse.enable()
    entered, leave = threading.Event(), threading.Event()

    def open_a_block():
        with pytensor_fuse.enabled(False, "linalg"):
            entered.set()
            leave.wait()

    other = threading.Thread(target=open_a_block)
    with pytensor_fuse.enabled(False, "joins"):
        other.start()
        entered.wait()
        pytensor_fuse.disable("fusion")
        leave.set()
        other.join()
        assert not pytensor_fuse.status()["fusion"].is_on
    assert pytensor_fuse.status()["fusion"].is_on


def test_a_switch_in_a_thread_without_a_block_outlasts_those_of_others():
    pytensor_fuse.enable()
    with pytensor_fuse.enabled(False, "joins"):
        other = threading.Thread(target=pytensor_fuse.disable, args=["fusion"])
        other.start()
        other.join()
    assert not pytensor_fuse.status()["fusion"].is_on
    pytensor_fuse.enable()


def test_whoever_holds_the_lock_finds_the_features_as_requested(monkeypatch):
    """Such as a fork, which copies both."""

    class CheckedLock:
        def __enter__(self):
            lock.acquire()
            check()

        def __exit__(self, *_):
            check()
            lock.release()

    def check():
        states.append((UNITS["joins"].is_on, "joins" in requested()))

    states = []
    lock = threading.RLock()
    pytensor_fuse.enable("joins")
    monkeypatch.setattr(switch_module, "_lock", CheckedLock())
    with pytensor_fuse.enabled(False, "joins"):
        pytensor_fuse.enable("joins")
        with pytensor_fuse.enabled(False):
            pass
    assert set(states) == {(True, True), (False, False)}


def in_threads(work, number):
    errors = []

    def guarded():
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(number)]
    for thread in threads:
        thread.start()
    return threads, errors


def test_switching_from_several_threads():
    pytensor_fuse.disable()
    before = contents(optdb["elemwise_fusion"])

    def work():
        for _ in range(200 if IS_DEEP else 40):
            pytensor_fuse.enable()
            with pytensor_fuse.enabled(False), pytensor_fuse.enabled():
                assert type(registered()) in (FusionOptimizer, FusionRewriter)
            pytensor_fuse.disable()

    threads, errors = in_threads(work, 8)
    for thread in threads:
        thread.join()
    assert errors == []
    assert not pytensor_fuse.status()["fusion"].is_on
    assert len(layers) == 1
    assert contents(optdb["elemwise_fusion"]) == before


def test_rewriting_while_another_thread_switches():
    query = optdb["elemwise_fusion"].query("+composite_elemwise_fusion")
    done = threading.Event()
    sizes = []

    def work():
        while not done.is_set():
            sizes.append(rewrite(query))

    threads, errors = in_threads(work, 2)
    while len(sizes) < 40 and not errors:
        switch(on=True)
        switch(on=False)
    done.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert set(sizes) == {1}


@pytest.mark.parametrize("flag", [0, 1, None, []])
def test_a_flag_that_is_none_is_refused_at_once(flag):
    with pytest.raises(TypeError, match=r"flag must be True or False"):
        pytensor_fuse.enabled(flag)


def test_wrong_features_are_refused_at_once():
    with pytest.raises(TypeError, match="joins must be True or False, not 'no'"):
        pytensor_fuse.enabled(joins="no")
    with pytest.raises(ValueError, match="nonesuch"):
        pytensor_fuse.enabled(accelerators=["nonesuch"])


def test_a_block_is_a_decorator_that_can_be_called_again():
    @pytensor_fuse.enabled(False)
    def look():
        return pytensor_fuse.status()["fusion"].is_on

    assert [look(), look()] == [False, False]
    assert pytensor_fuse.status()["fusion"].is_on
