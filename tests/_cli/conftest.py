"""The files on which commands are run."""

import pytest

from support.programs.commands import FILE


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    (path / "model.py").write_text(FILE)
    (path / "bad_syntax.py").write_text("x = 1\ny = = 2\n")
    (path / "bad_import.py").write_text("x = 1\n\nimport not_there_at_all\n")
    (path / "helper.py").write_text("VALUE = 3\n")
    (path / "imports_helper.py").write_text(
        "import helper\nimport pytensor.tensor as pt\nfrom pytensor.graph.fg import FunctionGraph\n"
        "x = pt.vector()\ngraph = FunctionGraph([x], [x + helper.VALUE])\n"
    )
    # A name that the library itself imports.
    (path / "inner").mkdir()
    (path / "inner" / "json.py").write_text("VALUE = 1\n" + FILE)
    return path
