"""Attributes that are replaced for a while."""

from __future__ import annotations

from pytensor_fuse._pytensor.patching.temporary_attributes import TemporaryAttributes, class_tree


class Base:
    color = "red"


class Left(Base):
    color = "blue"


class Right(Base):
    pass


class Both(Left, Right):
    pass


def test_all_is_restored() -> None:
    here = Left()
    here.color = "own"
    done = TemporaryAttributes()
    for owner in (Base, Left, Right, here):
        done.replace(owner, "color", "gray")
        assert done.has(owner, "color")
        assert owner.color == "gray"
    done.undo()
    assert [Base.color, Left.color, Right.color, here.color] == ["red", "blue", "red", "own"]
    assert "color" not in vars(Right)
    assert not done.has(Base, "color")


def test_the_first_replacement_counts() -> None:
    done = TemporaryAttributes()
    done.replace(Base, "color", "gray")
    done.replace(Base, "color", "white")
    assert Base.color == "gray"
    done.undo()
    assert Base.color == "red"


def test_what_others_have_put_there_stays() -> None:
    here = Left()
    done = TemporaryAttributes()
    done.replace(here, "color", "gray")
    here.color = "theirs"
    done.undo()
    assert here.color == "theirs"
    done.replace(here, "color", "gray")
    del here.color
    done.undo()
    assert here.color == "blue"


def test_class_tree() -> None:
    assert class_tree(Base) == [Base, Left, Right, Both]
