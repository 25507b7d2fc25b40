"""The commands that make reports on objects in files and on the package.

The commands end the process. Each kind of failure has one line on stderr and its own exit code.
All other output of the process, such as that of the file's code, goes to stderr too, so that
stdout contains the report alone.

PyTensor is not imported before the file imports it, since the file may set PyTensor's flags.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from pytensor_fuse._cli.arguments import STANDARD_OUTPUT, parser_of
from pytensor_fuse._cli.failures import (
    ExitCode,
    ReportError,
    failures_end_process,
    import_pytensor,
    one_line,
)
from pytensor_fuse._cli.messages import say, step
from pytensor_fuse._cli.models import compiled_model, is_model, rewritten_model
from pytensor_fuse._cli.output import OutputFiles, print_report, take_output
from pytensor_fuse._cli.targets import load
from pytensor_fuse._reports.files import write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._audit.audit import Audit
    from pytensor_fuse._explain import Explanation
    from pytensor_fuse._info import Info
    from pytensor_fuse._plan.plan import FusionPlan

# The number of unknown ops that are named.
_NAMED = 5


def run(command: str, arguments: Sequence[str]) -> NoReturn:
    """Run a command, and end the process."""
    with failures_end_process():
        options = parser_of(command).parse_args(arguments)
        output = take_output()
        text = _made_report(command, options)
        if text is not None:
            print_report(output, text)
    sys.exit(ExitCode.SUCCESS)


def _audit(options: argparse.Namespace) -> Audit:
    compiled = _compiled(options)
    from pytensor_fuse._audit.audit import audit

    with step("auditing"):
        found = audit(compiled, shapes=options.shape)
    if found.ops.unknown:
        names = ", ".join(op.name for op in found.ops.unknown[:_NAMED])
        more = ", ..." if len(found.ops.unknown) > _NAMED else ""
        say(f"the audit does not know these ops: {names}{more}")
    return found


def _explain(options: argparse.Namespace) -> Explanation:
    compiled = _compiled(options)
    from pytensor_fuse._explain import explain

    with step("explaining"):
        return explain(compiled, shapes=options.shape)


def _plan(options: argparse.Namespace) -> FusionPlan:
    value, target = load(options.target), options.compile_for
    if is_model(value):
        value, mode = rewritten_model(value)
        target = target or mode
    from pytensor_fuse._plan.plan import plan_fusion

    with step("planning"):
        return plan_fusion(value, target=target)


def _info(options: argparse.Namespace) -> Info:
    import_pytensor()
    from pytensor_fuse._info import info

    return info()


def _compiled(options: argparse.Namespace) -> Any:
    value = load(options.target)
    return compiled_model(value) if is_model(value) else value


_REPORTS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "audit": _audit,
    "explain": _explain,
    "plan": _plan,
    "info": _info,
}


def _made_report(command: str, options: argparse.Namespace) -> str | None:
    """Make a report and write its files; return the text to print, if any."""
    paths = {name: getattr(options, name, None) for name in ("html", "svg", "dot", "json")}
    is_printed_json = paths["json"] == STANDARD_OUTPUT
    if is_printed_json:
        paths["json"] = None
    files = OutputFiles(*paths.values())
    try:
        report = _REPORTS[command](options)
    except ValueError as error:
        raise ReportError(ExitCode.CANNOT_REPORT, one_line(error)) from error
    for name in ("html", "svg", "dot"):
        files.write(paths[name], getattr(report, f"to_{name}", str))
    if options.json is None:
        return None if any(paths.values()) else str(report)
    text = json.dumps(report.to_dict(), indent=2, allow_nan=False)
    files.write(paths["json"], lambda path: write(path, f"{text}\n"))
    return text if is_printed_json else None
