"""The normal form is the same for one program in two layouts, and another for another program."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytensor_fuse._pytensor.compat.normal_form import digest, normal_form

# The example of the issue: what uses the same names, and does the opposite.
CONDITION = "def function(x):\n    return x.n < 1 and x.m\n"


def of(text: str) -> str:
    return digest(ast.parse(text).body[0])


@pytest.mark.parametrize(
    "other",
    [
        "x.n >= 99 or not x.m",
        "x.n <= 1 and x.m",
        "x.n < 2 and x.m",
        "x.n < 1.0 and x.m",
        "x.n < True and x.m",
        "x.n < 1 or x.m",
        "x.n < 1 and not x.m",
        "1 < x.n and x.m",
        "x.m < 1 and x.n",
        "x.m and x.n < 1",
        "(x.n < 1) & x.m",
        "x.n < (1 and x.m)",
        "-x.n < 1 and x.m",
        "x.n < 1 and x.m()",
        "x.n < 1 and x[m]",
        "x.n < 1 and 'x.m'",
        "(x.n < 1 and x.m,)",
        "x.n < 1 if x.m else x.m",
        "f'{x.n < 1}' and x.m",
    ],
)
def test_what_uses_the_same_names_is_another(other: str) -> None:
    assert of(CONDITION.replace("x.n < 1 and x.m", other)) != of(CONDITION)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("if a: b()", "while a: b()"),
        ("if a: b()\nelse: c()", "if a: b()\nc()"),
        ("if a:\n    b()\n    c()", "if a: b()\nc()"),
        ("if a: b()\nelif c: d()", "if a: b()\nif c: d()"),
        ("a += 1", "a -= 1"),
        ("a = 1", "a += 1"),
        ("a, b = c", "(a, b), = c"),
        ("for a in b: c()", "for c in b: a()"),
        ("for a in b: break", "for a in b: continue"),
        ("raise A", "raise A from None"),
        ("try: a()\nexcept B: c()", "try: a()\nexcept C: c()"),
        ("try: a()\nexcept B: c()", "try: a()\nfinally: c()"),
        ("import a", "import a as b"),
        ("from a import b", "from .a import b"),
        ("def f(a=1): return a", "def f(a=2): return a"),
        ("def f(a, /): return a", "def f(a): return a"),
        ("def f(*a): return a", "def f(**a): return a"),
        ("def f(*, a=None): return a", "def f(*, a): return a"),
        ("@a\ndef f(): return 1", "@b\ndef f(): return 1"),
        ("[a for a in b if c]", "[a for a in b]"),
        ("[a for a in b]", "{a for a in b}"),
        ("a[1:2]", "a[1:2:3]"),
        ("a[1:]", "a[:1]"),
        ("{**a, 'b': 1}", "{'b': 1, **a}"),
        ("{None: a}", "{**a}"),
        ("a(*b)", "a(**b)"),
        ("a(b=1)", "a(c=1)"),
        ("a = f'{b}'", "a = f'{b!r}'"),
        ("a = f'{b:>3}'", "a = f'{b:<3}'"),
        ("a = f'{b}c'", "a = f'c{b}'"),
        ("a = f'{b}' 'c'", "a = f'{b}', 'c'"),
        ("a = 'b'", "a = b'b'"),
        ("a = 1", "a = 1j"),
        ("a = 1e400", "a = inf"),
        ("match a:\n    case None: b()", "match a:\n    case False: b()"),
        ("class A:\n    b: int = 1", "class A:\n    b: str = 1"),
        ("global a", "global b"),
        ("lambda a: b", "lambda b: b"),
    ],
)
def test_what_is_written_otherwise_is_another(one: str, other: str) -> None:
    assert digest(ast.parse(one)) != digest(ast.parse(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(a): return a", "def f(\n    a,  # said\n):\n\n    # said\n    return (a)"),
        ("def f(a): return a", "def f(a: int) -> int: return a"),
        ("def f(a): return a", 'def f(a):\n    """Said."""\n    return a'),
        ("def f(): pass", 'def f():\n    """Said."""'),
        ("a = 1", "a = 0x1"),
        ("a = 1000", "a = 1_000"),
        ("a = 1.5", "a = 15e-1"),
        ("a = 'b'", 'a = "b"'),
        ("a = 'bc'", "a = 'b' 'c'"),
        ("a = 'b'", "a = u'b'"),
        ("a = '\\u00e9'", "a = '\u00e9'"),
        ("a = f'b{c}d'", "a = 'b' f'{c}' 'd'"),
        ("a = f'{b:{c}}'", 'a = f"""{ b :{ c }}"""'),
        ("def f(): a: int = 1", "def f(): a: str = 1"),
        ("if a: b()", "if a:\n    pass\n    b()\n    'said'\n    ..."),
        ("a[b, c]", "a[(b, c)]"),
        ("a if b else c", "(a) if (b) else (c)"),
    ],
)
def test_layout_is_not_seen(one: str, other: str) -> None:
    assert normal_form(ast.parse(one)) == normal_form(ast.parse(other))


# Digests must not depend on Python's version: these were made by Python 3.13.
def test_all_versions_of_python_agree() -> None:
    text = '''
@decorated(by=1)
async def function(a, /, b: int = 0, *c, d=None, **e) -> None:
    """Said."""
    global g
    with open(f"{a!r:>{b}}" "x\\n") as f, (yield):
        x = [*c, -1, 1e400, 2j, b"\\xff", "\\u00e9", ...]
        x[1:, ::2] @= {**e, 'k': lambda q: q if d else not q}
    try:
        assert a < b <= 3 in c, f"{a=}"
    except (ValueError, TypeError) as error:
        raise error from None
    match a:
        case {"k": [1, *rest]} | None: return (y := await b)
    return [i async for i in c if i if not i]
'''
    assert digest(ast.parse(text)) == "cd4287b546d6"


# Random programs ---------------------------------------------------------------------------

# A piece of a program is a template, with a place for each part of it, and the parts. Leaves are
# names and literals; operators are leaves, too.
NAMES = ("a", "b", "c", "length")
LITERALS = ("0", "1", "2.5", "'t'", "b't'", "True", "None")
BINARY = ("+", "-", "*", "/", "//", "%", "**", "<<", "&", "|", "^", "@")
COMPARED = ("<", "<=", ">", ">=", "==", "!=", "is", "is not", "in", "not in")
ALTERNATIVES = (NAMES, LITERALS, BINARY, COMPARED, ("and", "or"), ("not ", "-", "+", "~"))

Piece = Any


def leaf(words: tuple[str, ...]) -> st.SearchStrategy[Piece]:
    return st.sampled_from(words).map(lambda word: (words, word))


names, literals = leaf(NAMES), leaf(LITERALS)


def composed(template: str, *parts: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    return st.tuples(st.just(template), *parts)


def larger(of: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    return st.one_of(
        composed("({} {} {})", of, leaf(BINARY), of),
        composed("({} {} {})", of, leaf(COMPARED), of),
        composed("({} {} {})", of, leaf(("and", "or")), of),
        composed("({}{})", leaf(("not ", "-", "+", "~")), of),
        composed("({} if {} else {})", of, of, of),
        composed("({}).{}", of, names),
        composed("({})[{}]", of, of),
        composed("({})({}, {}={})", of, of, names, of),
        composed("[{} for {} in {} if {}]", of, names, of, of),
        composed("(lambda {}: {})", names, of),
    )


expressions = st.recursive(names | literals, larger, max_leaves=6)
simple = st.one_of(
    composed("{} = {}", names, expressions),
    composed("{} {}= {}", names, leaf(BINARY), expressions),
    composed("assert {}", expressions),
    composed("return {}", expressions),
    composed("call({})", expressions),
)
statements = st.one_of(
    simple,
    composed("if {}:\n    {}\n    {}\nelse:\n    {}", expressions, simple, simple, simple),
    composed("for {} in {}:\n    {}", names, expressions, simple),
    composed("while {}:\n    {}", expressions, simple),
    composed("def {}({}={}):\n    {}", names, names, expressions, simple),
)
programs = composed("def function({}):\n    {}\n    {}", names, statements, statements)


def written(piece: Piece) -> str:
    """Return the text of a piece; what is in a block gets the indentation of its place."""
    if isinstance(piece[0], tuple):
        return str(piece[1])
    lines = piece[0].split("\n")
    parts = iter(piece[1:])
    found = []
    for line in lines:
        space = line[: len(line) - len(line.lstrip())]
        texts = [written(next(parts)).replace("\n", f"\n{space}") for _ in range(line.count("{}"))]
        found.append(line.format(*texts))
    return "\n".join(found)


def leaves(piece: Piece) -> int:
    if isinstance(piece[0], tuple):
        return 1
    return sum(map(leaves, piece[1:]))


def mutated(piece: Piece, at: int, word: int) -> Piece:
    """Return a piece with another word in the place of a leaf."""
    if isinstance(piece[0], tuple):
        others = [one for one in piece[0] if one != piece[1]]
        return piece[0], others[word % len(others)]
    parts = list(piece[1:])
    for number, part in enumerate(parts):
        count = leaves(part)
        if 0 <= at < count:
            parts[number] = mutated(part, at, word)
        at -= count
    return piece[0], *parts


def laid_out(text: str, data: st.DataObject) -> str:
    """Return a text with other spaces, empty lines, parentheses and comments."""
    width = data.draw(st.integers(1, 8))
    lines = []
    for line in text.split("\n"):
        words = line.lstrip(" ")
        space = " " * (width * ((len(line) - len(words)) // 4))
        extra = data.draw(st.sampled_from(["", "", "# said\n", "\n", f"{space}    # said\n"]))
        end = data.draw(st.sampled_from(["", "  # said: + 1", "   "]))
        if data.draw(st.booleans()):
            words = words.replace("(", "(\n# said\n   ").replace(", ", " ,  ")
        if data.draw(st.booleans()):
            words = words.replace("'", '"').replace(" + ", "+").replace("[", "[ ")
        if words.startswith("return ") and data.draw(st.booleans()):
            words = f"return ({words.removeprefix('return ')})"
        lines.append(f"{extra}{space}{words}{end}")
    return "\n".join(lines)


@given(programs, st.data())
def test_another_layout_is_the_same(program: Piece, data: st.DataObject) -> None:
    text = written(program)
    assert of(laid_out(text, data)) == of(text)


@given(programs, st.data())
def test_any_other_name_literal_or_operator_is_another(program: Piece, data: st.DataObject) -> None:
    other = mutated(
        program, data.draw(st.integers(0, leaves(program) - 1)), data.draw(st.integers(0, 9))
    )
    assert of(laid_out(written(other), data)) != of(written(program))
