"""Addresses and flat indices at which the lanes of a vector load and store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor_fuse._native.emission.accesses import flat_step
from pytensor_fuse._native.emission.lanes import multiples
from pytensor_fuse._native.emission.operations import emit_operation
from pytensor_fuse._native.emission.types import MEMORY
from pytensor_fuse._native.program.model import Load, Op

if TYPE_CHECKING:
    from pytensor_fuse._native.emission.accesses import Movement
    from pytensor_fuse._native.emission.functions import FunctionEmitter
    from pytensor_fuse._native.emission.lanes import Lanes
    from pytensor_fuse._native.program.model import BufferId, For, Value


class Places:
    """The addresses and flat indices of one loop's accesses.

    Parameters
    ----------
    function
        The function around the loop.
    loop
        The loop.
    movement
        The changes of the loop's values between iterations.
    lanes
        The loop's values as vectors.
    """

    def __init__(
        self, function: FunctionEmitter, loop: For, movement: Movement, lanes: Lanes
    ) -> None:
        self._f = function
        self._w = function.w
        self._index = loop.index
        self._movement = movement
        self._lanes = lanes
        self._flats: dict[tuple[Value, ...], str] = {}
        self._packs: dict[BufferId, str] = {}
        self._lane_places: dict[tuple[Value, ...], list[str]] = {}
        # Keys of flat indices that differ between the two lanes of each pair.
        self._apart: set[tuple[Value, ...]] = set()
        self._definitions = {
            statement.out: statement for statement in loop.body if isinstance(statement, Op | Load)
        }

    def step(self, buffer: BufferId, index: tuple[Value, ...]) -> int | None:
        """Return the increment of a flat index per lane; None if it is not constant or unknown."""
        if any(at in self._movement.varying for at in index):
            return None
        return flat_step(self._f.program, buffer, index, self._movement.steps)

    def in_pack(self, buffer: BufferId) -> str:
        """Return the address of a packed constant's vector for an iteration."""
        f, w = self._f, self._w
        first, number, n_members = f.packed[buffer]
        kind = MEMORY[f.program.buffers[buffer].dtype]
        vectors = self._packs.get(first)
        if vectors is None:
            row = w.let(f"mul i64 {f.operands[self._index]}, {n_members}")
            vectors = w.let(f"getelementptr {kind}, ptr {f.pointers[first]}, i64 {row}")
            self._packs[first] = vectors
        return w.let(f"getelementptr {kind}, ptr {vectors}, i64 {number * self._lanes.count}")

    def _flat_vector(self, buffer: BufferId, index: tuple[Value, ...]) -> str:
        """Return the vector of the flat indices of all lanes."""
        f, w, lanes = self._f, self._w, self._lanes.count
        lengths = f.program.buffers[buffer].lengths
        key = index + lengths[1:]
        found = self._flats.get(key)
        if found is not None:
            return found
        kind = f"<{lanes} x i64>"
        step = self.step(buffer, index)
        if step is not None:
            base = self._lanes.spread("i64", f.flat(buffer, index), w.lines)
            numbers = multiples(step, lanes)
            found = w.let(f"add {kind} {base}, <{numbers}>")
        else:
            found = self._lanes.vector(index[0])
            for at, length in zip(index[1:], lengths[1:], strict=True):
                scaled = w.let(f"mul {kind} {found}, {self._lanes.vector(length)}")
                found = w.let(f"add {kind} {scaled}, {self._lanes.vector(at)}")
        self._flats[key] = found
        return found

    def addresses(self, buffer: BufferId, index: tuple[Value, ...]) -> str:
        """Return the vector of the addresses of all lanes' elements."""
        kind, pointer = MEMORY[self._f.program.buffers[buffer].dtype], self._f.pointers[buffer]
        places = f"<{self._lanes.count} x i64> {self._flat_vector(buffer, index)}"
        return self._w.let(f"getelementptr {kind}, ptr {pointer}, {places}")

    def of_each(self, buffer: BufferId, index: tuple[Value, ...]) -> list[str]:
        """Return the flat index of each lane's element.

        Inactive lanes have a flat index that is in bounds.
        """
        key = index + self._f.program.buffers[buffer].lengths[1:]
        found = self._lane_places.get(key)
        if found is None:
            found = self._in_copies(buffer, index) or self._read_places(index)
            found = found or self._taken_apart(self._flat_vector(buffer, index))
            self._lane_places[key] = found
        return found

    def _taken_apart(self, flat: str) -> list[str]:
        """Extract the lanes of a vector of flat indices; inactive lanes become 0."""
        w, lanes = self._w, self._lanes.count
        if self._lanes.mask:
            off = f"<{lanes} x i64> zeroinitializer"
            flat = w.let(f"select <{lanes} x i1> {self._lanes.mask}, <{lanes} x i64> {flat}, {off}")
        return [
            w.let(f"extractelement <{lanes} x i64> {flat}, i64 {lane}") for lane in range(lanes)
        ]

    def are_apart(self, buffer: BufferId, index: tuple[Value, ...]) -> bool:
        """Whether `of_each` differs between the lanes of each pair, active or not."""
        return index + self._f.program.buffers[buffer].lengths[1:] in self._apart

    def _in_copies(self, buffer: BufferId, index: tuple[Value, ...]) -> list[str] | None:
        """Return each lane's flat index if the first index is the loop's, modulo a power of two.

        A vector begins at a multiple of the number of lanes, which is a power of two, too. A lane's
        index therefore combines the bits of the first lane's index with those of the lane's number,
        without overlap, and the distance from the first lane's copy to each lane's copy is known
        before the loop.
        """
        f, w, lanes = self._f, self._w, self._lanes.count
        if len(index) != 2:
            return None
        most = self._mask(index[0], f.program.buffers[buffer].lengths[0])
        if most is None:
            return None
        # The second index alone, with the key of a buffer of one axis: no other part of a buffer
        # matters.
        places = self._lane_places.get(index[1:])
        if places is None:
            places = self._read_places(index[1:])
            places = places or self._taken_apart(self._lanes.vector(index[1]))
            self._lane_places[index[1:]] = places
        length = f.program.buffers[buffer].lengths[1]
        if most % 2:
            self._apart.add((*index, length))
        if most >= lanes:
            first = w.let(f"and i64 {f.operands[self._index]}, {most}")
            start = w.let(f"mul i64 {first}, {f.operands[length]}")
            places = [w.let(f"add i64 {place}, {start}") for place in places]
        starts = self._starts(most, length)
        return [
            w.let(f"add i64 {place}, {start}") for place, start in zip(places, starts, strict=True)
        ]

    def _mask(self, index: Value, length: Value) -> int | None:
        """Return the mask of an index, if it is the loop's index masked, and always in bounds."""
        constants = self._f.program.constants
        copy = self._definitions.get(index)
        if not isinstance(copy, Op) or copy.name != "and" or copy.args[0] != self._index:
            return None
        mask, limit = constants.get(copy.args[1]), constants.get(length)
        if mask is None or limit is None or not 0 <= mask < limit:
            return None
        return int(mask)

    def _starts(self, mask: int, length: Value) -> list[str]:
        """Return the distance of each lane's copy from the first lane's."""
        copies = [lane & mask for lane in range(self._lanes.count)]
        size = self._f.program.constants.get(length)
        if size is not None:
            # Literals are folded into addresses.
            return [str(copy * int(size)) for copy in copies]
        starts = []
        for copy in copies:
            starts.append(self._w.name())
            self._lanes.before.append(
                f"  {starts[-1]} = mul i64 {copy}, {self._f.operands[length]}"
            )
        return starts

    def _read_places(self, index: tuple[Value, ...]) -> list[str] | None:
        """Load each lane's index with a scalar load from its array, without a vector of indices."""
        f, w = self._f, self._w
        if len(index) != 1:
            return None
        casts: list[Op] = []
        source = self._definitions.get(index[0])
        while isinstance(source, Op) and source.name == "cast":
            casts.append(source)
            source = self._definitions.get(source.args[0])
        if not isinstance(source, Load) or self.step(source.buffer, source.index) != 1:
            return None
        dtype = f.program.buffers[source.buffer].dtype
        is_beyond = self._lanes.mask and not f.is_padded(source.buffer)
        if source.buffer in f.packed or is_beyond or dtype == "bool":
            return None
        first = f.address(source.buffer, source.index)
        places = []
        for lane in range(self._lanes.count):
            at = w.let(f"getelementptr {MEMORY[dtype]}, ptr {first}, i64 {lane}") if lane else first
            place = w.let(f"load {MEMORY[dtype]}, ptr {at}")
            given = dtype
            for cast in reversed(casts):
                to = f.program.dtypes[cast.out]
                place = emit_operation(w, "cast", to, given, [place], 1)
                given = to
            places.append(place)
        return places
