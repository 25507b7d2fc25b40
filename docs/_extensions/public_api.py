"""The reference: pages of all public names, generated from the packages' lists of them.

A name that is added to a list appears in the reference automatically: if it belongs to none
of the groups below, it is listed among the other names.

Public names are defined in private modules, whose names annotations use.
References to such a name are redirected to the public one. References to private names without a
public name are shown unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import getdoc, isclass, isfunction
from pathlib import Path
from types import ModuleType

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from pytensor_fuse._reports.report import PageReport

PACKAGE = "pytensor_fuse"

# The names of the package itself; related names share a page.
GROUPS: dict[str, tuple[str, list[str]]] = {
    "switches": ("Switches", ["enable", "disable", "enabled", "status", "info"]),
    "questions": ("Questions", ["explain", "audit", "trace", "plan_fusion", "freeze"]),
}
# Public modules below the package, with the titles of their pages; those that there are.
MODULES = {
    "pytensor_fuse.reports": "Reports",
    "pytensor_fuse.exceptions": "Exceptions",
    "pytensor_fuse.cache": "The cache",
    "pytensor_fuse.linalg": "Linear algebra",
    "pytensor_fuse.native": "Machine code for others",
    "pytensor_fuse.graph": "Graphs of integers",
}
# What a page of names cannot show.
HIDDEN = {"__version__", "cache", "exceptions", "graph", "linalg", "native", "reports"}


def groups() -> Iterator[tuple[str, str, ModuleType, list[str]]]:
    """Each page: its file, its title, its module and the names on it, all public names once."""
    package = import_module(PACKAGE)
    left = [name for name in package.__all__ if name not in HIDDEN]
    for page, (title, names) in GROUPS.items():
        there = [name for name in names if name in left]
        left = [name for name in left if name not in there]
        yield page, title, package, there
    if left:
        yield "others", "Other names", package, left
    for name, title in MODULES.items():
        if find_spec(name) is not None:
            module = import_module(name)
            yield name.rpartition(".")[2], title, module, list(module.__all__)


def directive(module: ModuleType, name: str) -> list[str]:
    value = getattr(module, name)
    if isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
    elif callable(value):
        kind = "autofunction"
    else:
        kind = "autodata"
    path = f"{module.__name__}.{name}"
    lines = [f".. {kind}:: {path}"]
    if isclass(value) and issubclass(value, Enum):
        lines.append("   :undoc-members:")
    if isclass(value) and issubclass(value, PageReport):
        lines.append("   :inherited-members:")
    return [*lines, ""]


def page_text(title: str, module: ModuleType, names: list[str]) -> str:
    lines = [title, "=" * len(title), ""]
    if module.__name__ != PACKAGE:
        lines += [f".. automodule:: {module.__name__}", "   :no-members:", ""]
    for name in names:
        lines += directive(module, name)
    return "\n".join(lines)


def index_text() -> str:
    title = "Reference"
    lines = [title, "=" * len(title), ""]
    for _, heading, module, names in groups():
        lines += [f"**{heading}**", ""]
        for name in names:
            value = getattr(module, name)
            role = "class" if isclass(value) else "func" if callable(value) else "data"
            # What a docstring says first; of data, its class would say it of itself.
            said = (getdoc(value) or "").partition("\n")[0] if role != "data" else ""
            lines.append(f"- :py:{role}:`~{module.__name__}.{name}`{said and f': {said}'}")
        lines.append("")
    lines += [".. toctree::", "   :hidden:", ""]
    lines += [f"   {page}" for page, _, _, _ in groups()]
    return "\n".join(lines) + "\n"


def write_pages(app: Sphinx) -> None:
    """Write what has changed, so that Sphinx reads only that again."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    texts = {f"{page}.rst": page_text(*rest) for page, *rest in groups()}
    texts["index.rst"] = index_text()
    for path in folder.glob("*.rst"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


@cache
def public_names() -> dict[str, str]:
    """What private modules call each thing that has a public name."""
    found = {}
    for _, _, module, names in groups():
        for name in names:
            value = getattr(module, name)
            if isclass(value) or isfunction(value):
                found.setdefault(
                    f"{value.__module__}.{value.__qualname__}", f"{module.__name__}.{name}"
                )
    return found


def public_name(target: str) -> str | None:
    """The public name of what a reference calls ``target``; None if it has none."""
    target = target.lstrip("~.")
    names = public_names()
    if target in names:
        return names[target]
    by_last = {public.rpartition(".")[2]: public for public in names.values()}
    head, _, rest = target.rpartition(".")
    if head in names:  # A method or an attribute.
        return f"{names[head]}.{rest}"
    if target.startswith(f"{PACKAGE}.") and not target.startswith(f"{PACKAGE}._"):
        return None
    last = target if head == "" else rest
    return by_last.get(last) if head == "" or target.startswith(f"{PACKAGE}._") else None


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Element | None:
    """A link to the public name of what is defined in a private module."""
    if node.get("refdomain") != "py":
        return None
    target = node.get("reftarget", "")
    public = public_name(target)
    domain = env.domains["py"]
    if public is not None and public != target:
        found = domain.resolve_xref(env, node["refdoc"], app.builder, "obj", public, node, content)
        if found is not None:
            return found
    # A type that is private, of a type checker's own, or a parameter: shown as it is.
    is_private = target.startswith(f"{PACKAGE}._") or "." not in target
    return content if node.get("reftype") in ("class", "obj", "exc") and is_private else None


def inline_pictures(app: Sphinx, doctree: nodes.document) -> None:
    """Put pictures that follow the site's light and dark into the page itself.

    An image knows what the browser prefers, not what the reader has chosen on the page.
    """
    for image in list(doctree.findall(nodes.image)):
        path = Path(app.srcdir) / image["uri"]
        if path.suffix != ".svg" or not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        if "data-theme" in text:
            html = f'<div class="picture">{text}</div>'
            image.replace_self(nodes.raw("", html, format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    app.connect("missing-reference", resolve)
    app.connect("doctree-read", inline_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
