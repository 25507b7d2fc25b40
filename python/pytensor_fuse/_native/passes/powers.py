"""Sharing of logarithms between powers of one base.

The gradient of ``x ** a`` contains ``x ** (a - 1)``. Half of the time of a power goes to the
logarithm of its base, in a high and a low part, which is the same for both.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytensor_fuse._native.program.model import For, If, Op, Program, Statement
from pytensor_fuse._native.program.operations import POWER_BY_LOG, POWER_LOG, POWER_LOG_LOW
from pytensor_fuse._native.program.walking import with_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence


def with_shared_logs(program: Program) -> Program:
    """Return a program in which powers of one base, in one block, use the base's logarithm.

    Each power gets its own operations for the logarithm; `rewritten` merges them.

    Parameters
    ----------
    program
        The program, which is not changed.

    Returns
    -------
    Program
        The new program; the same program if it calls the functions that Numba's back end calls.
    """
    if program.calls_libm:
        return program
    after = program.extended()
    after.body = _block(after, program.body)
    return after


def _block(program: Program, statements: Sequence[Statement]) -> list[Statement]:
    powers = [one for one in statements if isinstance(one, Op) and one.name == "pow"]
    n_powers = Counter(one.args[0] for one in powers if program.dtypes[one.out] == "f64")
    after: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Op):
            if statement.name == "pow" and n_powers[statement.args[0]] > 1:
                after += _by_log(program, statement)
                continue
        elif isinstance(statement, For | If):
            statement = with_blocks(statement, lambda block: _block(program, block))
        after.append(statement)
    return after


def _by_log(program: Program, power: Op) -> list[Op]:
    base = power.args[0]
    high, low = len(program.dtypes), len(program.dtypes) + 1
    program.dtypes += ["f64", "f64"]
    return [
        Op(high, POWER_LOG, (base,)),
        Op(low, POWER_LOG_LOW, (base,)),
        Op(power.out, POWER_BY_LOG, (*power.args, high, low)),
    ]
