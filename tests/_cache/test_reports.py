"""Who asks is told what was kept, why not, what differs, and what came from the cache."""

from __future__ import annotations

import os
from textwrap import dedent

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FrozenFunctionGraph

from pytensor_fuse import audit, enabled, explain
from pytensor_fuse import trace as trace_rewrites
from pytensor_fuse._cache import lookup
from pytensor_fuse._cache.store import setting
from pytensor_fuse._cache.store.setting import DEFAULT, Level
from pytensor_fuse.cache import info as cache_info
from pytensor_fuse.exceptions import CacheError
from pytensor_fuse.reports import Trace
from support.cached import PYTHON, compiled
from support.programs.processes import PATIENCE, run_process, start_process, with_disk_cache
from support.switching import switched


def make(data=2.0, *, op=pt.exp, shape=(None,), mode=PYTHON, n=1):
    x = pt.tensor("x", dtype="float64", shape=shape)
    out = op(x) * data
    return compiled([x], [out] * n + [out.sum()], mode=mode)


def test_info_prints():
    make()
    make()
    make(mode=Mode("py", "fast_run").excluding("fusion"))
    info = cache_info()
    assert (info.level, info.hits, info.misses, info.entries) == ("memory", 1, 2, 2)
    assert info.seconds_saved >= 0
    lines = str(info).splitlines()
    assert lines[0] == "rewrite cache: memory"
    assert lines[1].startswith("  hits     1, of which 0 from disk and 0 with other data; 0.")
    assert lines[2] == "  misses   2"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"data": 3.0}, "constant at"),
        ({"data": np.arange(9.0)}, "constant at"),
        ({"op": pt.sin}, "node 1: Sin was Exp"),
        ({"shape": (9,)}, "input 0: Vector(float64, shape=(9,)) was Vector(float64, shape=(?,))"),
        ({"mode": Mode("vm", "fast_run")}, "mode.linker: 'VMLinker' was 'PerformLinker'"),
        ({"n": 2}, "output 2 was not there"),
    ],
    ids=["number", "array", "op", "shape", "linker", "outputs"],
)
def test_what_differs(options, expected):
    make()
    found = explain(make(**options), "cache")
    assert any(one.startswith(expected) for one in found), found
    assert explain(make(**options), "cache") == ()


def test_differences_that_cannot_be_shown():
    def make(inner, n):
        x, y = pt.vector("x"), pt.vector("y")
        named = [pt.exp(x) + k for k in range(30)]
        for one in named[:n]:
            one.name = "n"
        # Before PyTensor 3.1, inner graphs may be changed, and are not kept.
        has_inner = hasattr(FrozenFunctionGraph, "from_io")
        last = OpFromGraph([y], [inner(y)], name="f")(x) if has_inner else inner(x)
        return compiled([x], [sum(named), last])

    make(pt.cumsum, 0)
    found = explain(make(pt.cumprod, 30), "cache")
    assert "which variables have names differ" in found
    if hasattr(FrozenFunctionGraph, "from_io"):
        assert any("f{inline=False} has other properties or another inner" in one for one in found)
    assert max(map(len, found)) < 300


def test_how_many_values_differ():
    data = np.arange(919.0)
    make(data)
    changed = data.copy()
    changed[[3, 500]] += 1
    with switched(other_data=False):
        [found] = explain(make(changed), "cache")
    assert found.startswith("constant at Mul")
    assert found.endswith(": 2 of 919 values")


def test_settings_and_features_that_differ():
    make()
    with pytensor.config.change_flags(floatX="float32"):
        assert "config.floatX: 'float32' was 'float64'" in explain(make(), "cache")
    with switched(joins=False):
        found = explain(make(), "cache")
    assert any(one.startswith("features: ") for one in found)
    assert "rewriters or rules have been registered or removed" in found


def test_why_of_functions_without_the_cache():
    assert explain(make(), "cache") == (
        "the graph was rewritten: no similar graph is in the cache",
    )
    with enabled(False, "cache"):
        assert explain(make(), "cache") == ("it was compiled without the cache",)
    with pytest.raises(TypeError, match=r"^explain takes a compiled function .* not f, .* str$"):
        explain("f", "cache")


def test_why_of_a_copy_is_not_known():
    function = make()
    for unknown in (function.copy(), function.maker.fgraph.clone()):
        assert explain(unknown, "cache")[0].startswith("where its graph came from is not known")


def test_audits_and_traces_say_it():
    make()
    function = make()
    assert "taken from the cache, rewritten at 20" in str(audit(function))
    with enabled(False, "cache"):
        assert "cache, rewritten" not in str(audit(make()))
    with trace_rewrites() as trace:
        make()
        make(7.0)
    hit, miss = trace.calls
    assert hit.cached is not None
    assert hit.inner == ()
    assert miss.cached is None
    assert miss.inner
    assert "taken from the cache, rewritten at 20" in str(trace)
    # Of a graph that no pass has run over, no nodes are counted, and there is no table.
    of_hit = str(trace).split("call 1: ")[1].split("\n\n")[0].splitlines()
    assert len(of_hit) == 2
    assert "nodes" not in of_hit[0]
    again = Trace.from_dict(trace.to_dict())
    assert again.calls[0].cached == hit.cached
    assert "taken from the cache" in trace.to_html()


def test_verifying_compares(verifying, monkeypatch):
    make()
    make()
    assert cache_info().hits == 1
    [entry] = {id(entry): entry for _, entry in lookup.memory.kept()}.values()
    entry.rewritten = entry.rewritten._replace(outputs=entry.rewritten.outputs[::-1])
    with pytest.raises(CacheError, match=r"not what rewriting makes of it now: the outputs are"):
        make()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r._replace(nodes=r.nodes[:-1]), "number of nodes"),
        (lambda r: r._replace(ops=r.ops[::-1]), "was"),
        (lambda r: r._replace(is_watched=not r.is_watched), "destroy handler"),
        (lambda r: r._replace(input_types=()), "inputs have other types"),
        (
            lambda r: r._replace(nodes=((r.nodes[0][0], r.nodes[0][1][::-1], (9,)), *r.nodes[1:])),
            "reads something else|computes other types",
        ),
    ],
    ids=["nodes", "ops", "watched", "inputs", "reads"],
)
def test_every_difference_is_seen(verifying, change, said):
    def build():
        x, y = pt.vectors("x", "y")
        return compiled([x, y], [pt.cumsum(x) - pt.cumprod(y), (x @ y)])

    build()
    [entry] = {id(entry): entry for _, entry in lookup.memory.kept()}.values()
    changed = change(entry.rewritten)
    if changed.nodes[0][2] == (9,):
        changed = changed._replace(types=changed.types * 10)
    entry.rewritten = changed
    with pytest.raises(CacheError, match=said):
        build()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", DEFAULT),
        ("OFF", Level.OFF),
        (" memory ", Level.MEMORY),
        ("verify", Level.VERIFY),
        ("0", Level.OFF),
        ("no", Level.OFF),
        ("1", DEFAULT),
    ],
)
def test_the_environment(monkeypatch, value, expected):
    monkeypatch.setenv(setting.VARIABLE, value)
    assert setting._level_by_environment() is expected


def test_an_environment_that_means_nothing(monkeypatch):
    monkeypatch.setenv(setting.VARIABLE, "fast")
    with pytest.warns(RuntimeWarning, match="'fast' is none of off, memory, disk, verify; it is"):
        assert setting._level_by_environment() is DEFAULT


def test_off(monkeypatch):
    monkeypatch.setattr(setting, "_level", Level.OFF)
    make()
    make()
    assert (cache_info().hits, cache_info().misses) == (0, 0)


def test_the_feature_off() -> None:
    make()
    with switched(cache=False):
        assert cache_info().level == "off"
        assert str(cache_info()).startswith("rewrite cache: off")
        assert explain(make(), "cache") == ("it was compiled without the cache",)
    assert cache_info().level == "memory"


def test_no_place_on_disk(tmp_path):
    nowhere = tmp_path / "file"
    nowhere.touch()
    program = """
        import pytensor, pytensor.tensor as pt, pytensor_fuse
        from pytensor.compile.mode import Mode
        x = pt.vector("x")
        f = pytensor.function([x], x * 2, mode=Mode("py", "fast_run"))
        info = pytensor_fuse.cache.info()
        print(f([1.0]), info.misses, len(info.failures), info.path, "nowhere" in str(info))
        pytensor_fuse.cache.clear()
    """
    env = with_disk_cache(nowhere / "below")
    assert run_process("-c", dedent(program), env=env).stdout == "[2.] 1 2 None True\n"
    done = command(nowhere / "below", "info", check=False)
    assert done.returncode == 7
    assert "there is no place for graphs: " in done.stderr
    assert "Traceback" not in done.stderr


def command(tmp_path, *arguments, **options):
    env = {**os.environ, "PYTENSOR_FLAGS": f"base_compiledir={tmp_path}"}
    return run_process("-m", "pytensor_fuse", "cache", *arguments, env=env, **options)


def test_the_command(tmp_path):
    path = command(tmp_path, "path").stdout.strip()
    assert path.startswith(str(tmp_path))
    assert command(tmp_path).stdout == f"0 graphs, 0.0 MB, {path}\n"
    program = tmp_path / "program.py"
    program.write_text(
        "import pytensor, pytensor.tensor as pt\n"
        "from pytensor.compile.mode import Mode\n"
        "x = pt.vector('x')\n"
        "pytensor.function([x], x * 2, mode=Mode('py', 'fast_run'))\n"
    )
    run_process("-m", "pytensor_fuse", str(program), env=with_disk_cache(tmp_path))
    assert command(tmp_path, "info").stdout.startswith(("1 graph,", "2 graphs,"))
    assert command(tmp_path, "clear").stdout == ""
    assert command(tmp_path, "info").stdout.startswith("0 graphs, 0.0 MB")


@pytest.mark.parametrize("arguments", [["wipe"], ["info", "more"]])
def test_a_wrong_command(tmp_path, arguments):
    wrong = command(tmp_path, *arguments, check=False)
    assert wrong.returncode == 2
    [line] = wrong.stderr.splitlines()
    assert line.startswith("pytensor_fuse: ")
    assert arguments[-1] in line
    assert line.endswith("; see pytensor-fuse cache --help")


def test_the_command_has_help(tmp_path):
    text = command(tmp_path, "--help").stdout
    assert text.startswith("usage: pytensor-fuse cache ")
    assert all(word in text for word in ("info", "clear", "path", "exit codes:"))
    assert "FILE.py" not in text


@pytest.mark.parametrize("name", ["cache", "info"])
def test_a_command_without_pytensor_fails_with_one_line(name):
    env = {**os.environ, "PYTENSOR_FLAGS": "floatX=float17"}
    done = run_process("-m", "pytensor_fuse", name, env=env, check=False)
    assert (done.returncode, done.stdout) == (8, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("pytensor_fuse: PyTensor cannot be imported: ValueError: ")


def test_a_reader_of_the_command_that_goes_away(tmp_path):
    env = {**os.environ, "PYTENSOR_FLAGS": f"base_compiledir={tmp_path}"}
    with start_process("-m", "pytensor_fuse", "cache", env=env) as running:
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait(PATIENCE) == 0
