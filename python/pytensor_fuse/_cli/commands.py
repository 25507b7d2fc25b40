"""The commands ``audit``, ``plan`` and ``info``: reports about files and the package.

The commands end the process. Each kind of failure has one line on stderr and its own exit code.
All other output of the process, such as that of the file's code, goes to stderr too, so that
stdout contains the report alone.

PyTensor is not imported before the file imports it, since the file may set PyTensor's flags.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pytensor_fuse._cli.arguments import STANDARD_OUTPUT, parser_of
from pytensor_fuse._cli.failures import ExitCode, ReportError, one_line
from pytensor_fuse._cli.messages import fail, step
from pytensor_fuse._cli.models import compiled_model, is_model, rewritten_model
from pytensor_fuse._cli.output import OutputFiles, print_report, take_output
from pytensor_fuse._cli.targets import load
from pytensor_fuse._reports.files import write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._audit.audit import Audit
    from pytensor_fuse._plan.plan import FusionPlan

# The number of unknown ops that are named.
_NAMED = 5

# The text to print, if any, and a failure to report after it.
_Report = tuple[str | None, ReportError | None]


def run(command: str, arguments: Sequence[str]) -> NoReturn:
    """Run a command, and end the process."""
    try:
        options = parser_of(command).parse_args(arguments)
        output = take_output()
        report, remark = _REPORTS[command](options)
        if report is not None:
            print_report(output, report)
        if remark is not None:
            raise remark
    except ReportError as failure:
        fail(str(failure), failure.code)
    except KeyboardInterrupt:
        fail("interrupted", ExitCode.INTERRUPTED)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        fail(
            f"{one_line(error)} ({Path(where.filename).name}, line {where.lineno}); "
            "this is a mistake of pytensor_fuse's own, please report it",
            ExitCode.OURS,
        )
    sys.exit(ExitCode.MADE)


def _audit(options: argparse.Namespace) -> _Report:
    files = OutputFiles(options.html, _json_file(options))
    value = load(options.target)
    from pytensor_fuse._audit.audit import audit

    compiled = compiled_model(value) if is_model(value) else value
    try:
        with step("auditing"):
            found: Audit = audit(compiled, shapes=options.shape)
    except ValueError as error:
        raise ReportError(ExitCode.CANNOT_REPORT, one_line(error)) from error
    files.write(options.html, found.to_html)
    remark = None
    if found.ops.unknown:
        names = ", ".join(op.name for op in found.ops.unknown[:_NAMED])
        more = ", ..." if len(found.ops.unknown) > _NAMED else ""
        remark = ReportError(
            ExitCode.UNKNOWN_OPS, f"the audit does not know these ops: {names}{more}"
        )
    if options.json == STANDARD_OUTPUT:
        return _json_text(found), remark
    files.write(options.json, lambda path: write(path, f"{_json_text(found)}\n"))
    is_written = options.html is not None or options.json is not None
    return None if is_written else str(found), remark


def _plan(options: argparse.Namespace) -> _Report:
    files = OutputFiles(options.html, _json_file(options), options.svg, options.dot)
    value = load(options.target)
    from pytensor_fuse._plan.plan import plan_fusion

    target = options.compile_for
    if is_model(value):
        fgraph, mode = rewritten_model(value)
        target = target or mode
    else:
        fgraph = value
    with step("planning"):
        plan: FusionPlan = plan_fusion(fgraph, target=target)
    files.write(options.html, plan.to_html)
    files.write(options.svg, plan.to_svg)
    files.write(options.dot, plan.to_dot)
    if options.json == STANDARD_OUTPUT:
        return _json_text(plan), None
    files.write(options.json, lambda path: write(path, f"{_json_text(plan)}\n"))
    is_written = any((options.html, options.json, options.svg, options.dot))
    return None if is_written else str(plan), None


def _info(options: argparse.Namespace) -> _Report:
    files = OutputFiles(_json_file(options))
    try:
        from pytensor_fuse._cli.info import information, text_of

        found = information()
    except ImportError as error:
        raise ReportError(
            ExitCode.CANNOT_REPORT, f"PyTensor cannot be imported: {one_line(error)}"
        ) from error
    text = json.dumps(found, indent=2)
    if options.json == STANDARD_OUTPUT:
        return text, None
    files.write(options.json, lambda path: write(path, f"{text}\n"))
    return None if options.json is not None else text_of(found), None


_REPORTS = {"audit": _audit, "plan": _plan, "info": _info}


def _json_file(options: argparse.Namespace) -> str | None:
    """Return the file for JSON, or None for standard output."""
    return None if options.json == STANDARD_OUTPUT else options.json


def _json_text(report: Audit | FusionPlan) -> str:
    return json.dumps(report.to_dict(), indent=2, allow_nan=False)
