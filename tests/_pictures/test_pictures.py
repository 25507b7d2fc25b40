"""Pages, still pictures and graphs for Graphviz: they hold any text, the same in every process."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph

import pytensor_fuse
from pytensor_fuse.reports import FusionPlan
from support.graphs import ReadsAnything, reverse, small_graph
from support.programs.processes import run_python

EVIL = "</script><b>&amp;\"'\\N\n\u2028{|}<!--"


# Texts ------------------------------------------------------------------------------------


def evil_plan() -> FusionPlan:
    x = pt.vector(EVIL)
    a = pt.exp(x)
    a.name = EVIL
    a.tag.trace = [[(EVIL, 7, "f", EVIL)]]
    return pytensor_fuse.plan_fusion(FunctionGraph([x], [reverse(a), pt.sin(a)], clone=False))


class Tags(HTMLParser):
    """Counts the tags of a page, and keeps the texts of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.attributes: dict[str, str | None] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag == "iframe":
            self.attributes = dict(attrs)


def tags(text: str) -> Tags:
    parser = Tags()
    parser.feed(text)
    return parser


def page_data(text: str) -> dict:
    (literal,) = re.findall(r"<script>const DATA = (.*?);</script>", text, re.DOTALL)
    return json.loads(literal)


def test_a_page_holds_any_text() -> None:
    plain = pytensor_fuse.plan_fusion(small_graph()).to_html()
    evil = evil_plan().to_html()
    assert tags(plain).seen == tags(evil).seen
    assert EVIL in page_data(evil)["strings"]


def test_an_svg_holds_any_text() -> None:
    root = ET.fromstring(evil_plan().to_svg())
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(EVIL in title for title in titles)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        *("svg", "rect", "text", "g", "title", "path"),
    }


def test_control_characters_and_lone_surrogates() -> None:
    x = pt.vector("a\x00b\ud800c\x1b")
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [pt.exp(x)], clone=False))
    for text in (plan.to_html(), plan.to_svg(), plan.to_dot(), plan._repr_html_()):
        text.encode()
    ET.fromstring(plan.to_svg())
    assert "a\ufffdb\ufffdc\ufffd" in plan.to_dot()


def run_dot(text: str) -> dict:
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed: apt-get install graphviz")
    done = subprocess.run(
        ["dot", "-Tjson"], input=text.encode(), capture_output=True, check=True, timeout=60
    )
    assert done.stderr == b""
    return json.loads(done.stdout)


def test_graphviz_reads_what_is_written() -> None:
    plan = pytensor_fuse.plan_fusion(small_graph())
    read = run_dot(plan.to_dot())
    picture = plan._picture
    clusters = [o for o in read["objects"] if o["name"].startswith("cluster_")]
    assert len(clusters) == len(plan.kernels)
    names = {o["_gvid"]: o["name"] for o in read["objects"]}
    for cluster, kernel in zip(clusters, plan.kernels, strict=True):
        assert len(cluster["nodes"]) == len(kernel.nodes)
    edges = {(names[e["tail"]], names[e["head"]]) for e in read["edges"]}
    assert edges == {(f"n{edge.source}", f"n{edge.target}") for edge in picture.edges}


def test_graphviz_reads_texts_of_any_length() -> None:
    # It refuses strings of more than 16,384 bytes.
    x = pt.vector("&" * 40_000)
    a = pt.exp(x)
    a.name = "\u2028" * 40_000
    a.tag.trace = [[("f" * 40_000, 7, "f", '"' * 40_000)]]
    many = ManyResults(3000)(a, return_list=True)
    fgraph = FunctionGraph([x], [*many, LongText()(a)], clone=False)
    plan = pytensor_fuse.plan_fusion(fgraph)
    longest = max(map(len, re.findall(r'"(?:[^"\\]|\\.)*"', plan.to_dot())))
    assert longest < 16_000
    titles = re.findall(r"<title>(.*?)</title>", plan.to_svg(), re.DOTALL)
    assert max(map(len, titles)) < 16_000
    tips = [o.get("tooltip", "") for o in run_dot(plan.to_dot())["objects"]]
    assert any(tip.startswith("Exp") for tip in tips)


def test_labels_are_short() -> None:
    x = pt.vector("x" * 100)
    y = LongText("op{")(LongText("(")(pt.exp(x)))
    y.name = "y" * 100
    plan = pytensor_fuse.plan_fusion(FunctionGraph([x], [y, y.sum()], clone=False))
    texts = [text for node in plan._picture.nodes for text in (node.label, node.caption)]
    texts += [text for box in plan._picture.boxes for text in (box.label, box.caption)]
    assert max(map(len, texts)) == 22


class LongText(ReadsAnything):
    def __init__(self, part: str = "op{") -> None:
        self.part = part

    def __str__(self) -> str:
        return self.part * 20_000


class ManyResults(ReadsAnything):
    __props__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = n

    def make_node(self, *inputs: Variable) -> Apply:
        return Apply(self, inputs, [pt.tensor(dtype="float64", shape=(i,)) for i in range(self.n)])


def test_graphviz_reads_any_text() -> None:
    read = run_dot(evil_plan().to_dot())
    tips = [o.get("tooltip", "") for o in read["objects"]]
    # Its own escapes are still in what it gives back: undone, the text is what it was.
    shown = [tip.replace("\\n", "\n").replace("\\\\", "\\").replace("&amp;", "&") for tip in tips]
    assert any(EVIL in text for text in shown)


# In a notebook ----------------------------------------------------------------------------


def test_a_notebook_gets_a_frame_without_rights() -> None:
    for plan in (pytensor_fuse.plan_fusion(small_graph()), evil_plan()):
        text = plan._repr_html_()
        shown = tags(text)
        assert set(shown.seen) == {"table", "thead", "tr", "th", "td", "iframe"}
        assert shown.attributes["sandbox"] == "allow-scripts"
        assert shown.attributes["srcdoc"] == plan.to_html()
        assert "<style" not in text
        assert "<script" not in text


def test_a_notebook_gets_figures_alone_of_a_large_plan() -> None:
    x = pt.vector("x")
    outputs = [reverse(x * i) for i in range(1001)]
    text = pytensor_fuse.plan_fusion(FunctionGraph([x], outputs, clone=False))._repr_html_()
    assert "to_html" in text
    assert len(text) < 2000


# Files ------------------------------------------------------------------------------------


def test_a_file_is_the_page(tmp_path: Path) -> None:
    plan = pytensor_fuse.plan_fusion(small_graph())
    path = tmp_path / "plan.html"
    assert plan.to_html(path) is None
    assert path.read_text(encoding="utf-8") == plan.to_html()
    assert plan.to_html(str(path)) is None
    assert [p.name for p in tmp_path.iterdir()] == ["plan.html"]


@pytest.mark.parametrize("bad", ["missing/plan.html", "."])
def test_bad_paths_are_named(tmp_path: Path, bad: str) -> None:
    with pytest.raises(OSError, match=re.escape(str((tmp_path / bad).name or tmp_path.name))):
        pytensor_fuse.plan_fusion(small_graph()).to_html(tmp_path / bad)
    assert list(tmp_path.iterdir()) == []


def test_no_path_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="path is empty"):
        pytensor_fuse.plan_fusion(small_graph()).to_html("")


# The same everywhere ----------------------------------------------------------------------

DIGESTS = """
    import hashlib
    import pytensor.tensor as pt
    import pytensor_fuse
    from pytensor.graph.fg import FunctionGraph

    x, y = pt.vectors("x", "y")
    out = x
    for i in range(30):
        out = pt.sin(out[::-1]) * y + pt.cos(out) / (i + 1)
    fgraph = FunctionGraph([x, y], [out, pt.exp(x).sum()])
    plan = pytensor_fuse.plan_fusion(fgraph)
    for text in (plan.to_html(), plan.to_svg(), plan.to_dot(), plan._repr_html_()):
        print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_pictures_are_the_same_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for seed in ("0", "1", "4711"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        digests.add(run_python(DIGESTS).stdout)
    assert len(digests) == 1, digests
    assert len(next(iter(digests)).split()) == 4
