"""Restore frames and points after SymPy has written computed results into them."""
# ruff: noqa: SLF001 - SymPy keeps what it knows of points and frames in private attributes only

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sympy.physics.mechanics import Point, ReferenceFrame


@contextmanager
def restore_frames_and_points(roots: Iterable[Any]) -> Iterator[None]:
    """Restore on leaving all that SymPy has written into frames and points in the meantime.

    ``Point.vel``, ``Point.pos_from`` and ``ReferenceFrame.dcm`` keep what they compute in the objects. A point without
    a velocity would have one from then on, which is another model.

    Args:
        roots: Frames and points; those that they are linked with, directly or not, are restored too.
    """
    stores = [store for item in _reachable_items(roots) for store in _cache_dictionaries(item)]
    before = [dict(store) for store in stores]
    try:
        yield
    finally:
        for store, content in zip(stores, before, strict=True):
            store.clear()
            store.update(content)


def list_vector_frames(vector: Any) -> Sequence[ReferenceFrame]:
    """Return the frames that a vector is written in; none if it is no vector."""
    return [frame for _, frame in getattr(vector, "args", ())]


def _cache_dictionaries(item: Any) -> list[dict[Any, Any]]:
    """Return the dictionaries in which SymPy keeps its knowledge of a frame or a point."""
    if isinstance(item, Point):
        return [item._pos_dict, item._vel_dict, item._acc_dict]
    return [item._dcm_dict, item._dcm_cache, item._ang_vel_dict, item._ang_acc_dict, item._var_dict]


def _reachable_items(roots: Iterable[Any]) -> list[Any]:
    """Return the frames and points among the roots, and all that are linked with them."""
    found: dict[Any, None] = {}
    queue = [root for root in roots if isinstance(root, Point | ReferenceFrame)]
    while queue:
        item = queue.pop()
        if item not in found:
            found[item] = None
            queue += _linked_items(item)
    return list(found)


def _linked_items(item: Any) -> list[Any]:
    """Return the frames or points that a frame or point is linked with."""
    if isinstance(item, Point):
        vectors = [*item._pos_dict.values(), *item._vel_dict.values()]
        return [
            *item._pos_dict,
            *item._vel_dict,
            *(frame for vector in vectors for frame in list_vector_frames(vector)),
        ]
    return [*item._dcm_dict, *item._ang_vel_dict]
