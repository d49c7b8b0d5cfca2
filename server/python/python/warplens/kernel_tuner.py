"""Prunes a search space of Kernel Tuner before a GPU sees it.

    from warplens.kernel_tuner import prune

    kept = prune("convolution", source, (4096, 4096), tune_params, gpu="rtx-2080-ti", keep=0.05)
    kernel_tuner.tune_kernel("convolution", source, (4096, 4096), arguments, tune_params, restrictions=kept.restriction)

Kernel Tuner itself says what is in the space and how large grids and blocks are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable, Union

from constraint import FunctionConstraint
from kernel_tuner import util
from kernel_tuner.searchspace import Searchspace

from . import _sweep
from ._question import Source, configuration
from .results import Prediction

_BLOCK_NAMES = ("block_size_x", "block_size_y", "block_size_z")
_MOST_THREADS = 1024


class Kept:
    """The configurations that a search is left with."""

    def __init__(self, names: Iterable[str], kept: list[Prediction], invalid: list[Prediction], seen: int) -> None:
        self._names = tuple(names)
        self.predictions = kept
        """What was predicted of those that are kept, fastest first; their `id` is the parameters' values by name."""
        self.invalid = invalid
        """Those of which it is predicted that they cannot be built or launched."""
        self.seen = seen
        """How many configurations the space has."""
        self._kept = {_key(one.id[name] for name in self._names) for one in kept}

    @property
    def configurations(self) -> list[dict[str, Any]]:
        """The parameters' values by name, the predicted fastest first."""
        return [dict(one.id) for one in self.predictions]

    @property
    def restriction(self) -> Any:
        """What Kernel Tuner takes as `restrictions`, alone or in a list with others."""
        kept = self._kept

        def is_kept(*values: Any) -> bool:
            return _key(values) in kept

        return FunctionConstraint(is_kept)

    def __contains__(self, values: object) -> bool:
        """True where a configuration is kept, the parameters' values by name."""
        if not isinstance(values, Mapping) or any(name not in values for name in self._names):
            return False
        return _key(values[name] for name in self._names) in self._kept

    def __len__(self) -> int:
        return len(self.predictions)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.configurations)

    def __repr__(self) -> str:
        return f"<Kept: {len(self)} of {self.seen} configurations, {len(self.invalid)} predicted not to launch>"


def prune(
    kernel_name: str,
    kernel_source: Source,
    problem_size: Union[int, str, tuple[Any, ...], list[Any], Callable[..., Any]],
    tune_params: Mapping[str, list[Any]],
    *,
    gpu: str | None = None,
    keep: Union[float, int] = 0.05,
    grid_div_x: Any = None,
    grid_div_y: Any = None,
    grid_div_z: Any = None,
    restrictions: Any = None,
    block_size_names: list[str] | None = None,
    args: Mapping[str, int] | None = None,
    defines: Mapping[str, object] | None = None,
    dynamic_shared_bytes: int | None = None,
    max_threads: int = _MOST_THREADS,
    model: str = "auto",
    language: str | None = None,
    include_paths: Iterable[str] = (),
) -> Kept:
    """The predicted fastest configurations of a space.

    What `tune_kernel` of Kernel Tuner takes by these names means the same here, `defines` excepted: these are macros beside the
    parameters, not in their place. `keep` is a share of the configurations that are predicted to launch (0.05), at least one, or
    a number of them (200). `args` are integer arguments by the kernel's parameter names.

    Raises ValueError as `warplens.sweep` does, where the space is empty, and where no configuration is predicted to launch.
    """
    most = _checked_keep(keep)
    if not tune_params:
        raise ValueError("tune_params: there are no parameters")
    space = _space(tune_params, restrictions, max_threads)
    divisors = (grid_div_x, grid_div_y, grid_div_z)
    asked = _configurations(space, problem_size, divisors, block_size_names, args, dynamic_shared_bytes)
    predicted = list(
        _sweep(
            kernel_source,
            asked,
            kernel_tuner=True,
            gpu=gpu,
            kernel=kernel_name,
            defines=dict(defines or {}),
            model=model,
            language=language,
            include_paths=include_paths,
        )
    )
    if not predicted:
        raise ValueError("the search space has no configurations")
    valid = [one for one in predicted if one.valid and one.time_ms is not None]
    invalid = [one for one in predicted if not one.valid or one.time_ms is None]
    if not valid:
        raise ValueError(f"none of the {len(predicted)} configurations is predicted to launch: {invalid[0].why_invalid}")
    valid.sort(key=lambda one: one.time_ms or math.inf)
    return Kept(tune_params, valid[: most(len(valid))], invalid, len(predicted))


def _checked_keep(keep: Union[float, int]) -> Callable[[int], int]:
    if isinstance(keep, bool) or not isinstance(keep, (int, float)):
        raise ValueError(f"keep: a share or a number is needed, not {keep!r}")
    if isinstance(keep, int):
        if keep < 1:
            raise ValueError(f"keep: at least one configuration is kept, not {keep}")
        return lambda _: keep
    if not 0.0 < keep <= 1.0:
        raise ValueError(f"keep: a share above 0 and up to 1.0 is needed, not {keep}")
    return lambda all_of_them: max(1, math.ceil(keep * all_of_them))


def _space(tune_params: Mapping[str, list[Any]], restrictions: Any, max_threads: int) -> list[dict[str, Any]]:
    try:
        space = Searchspace(dict(tune_params), restrictions, max_threads)
    except ValueError as error:
        # It does not say so itself.
        raise ValueError(f"Kernel Tuner finds no configurations in this space: {error}") from error
    return [dict(zip(tune_params, values)) for values in space.list]


def _configurations(
    space: list[dict[str, Any]],
    problem_size: Any,
    divisors: tuple[Any, Any, Any],
    block_size_names: list[str] | None,
    args: Mapping[str, int] | None,
    dynamic_shared_bytes: int | None,
) -> Iterator[dict[str, Any]]:
    names = list(block_size_names or _BLOCK_NAMES)
    names += _BLOCK_NAMES[len(names) :]
    for values in space:
        problem = util.get_problem_size(problem_size, values)
        yield configuration(
            id={name: _plain(value) for name, value in values.items()},
            defines=values,
            block=util.get_thread_block_dimensions(values, names),
            grid=util.get_grid_dimensions(problem, values, divisors, names),
            args=args,
            dynamic_shared_bytes=dynamic_shared_bytes,
        )


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item() if hasattr(value, "item") else value


def _key(values: Iterable[Any]) -> tuple[str, ...]:
    # As Kernel Tuner's cache has them: NumPy's numbers print as Python's.
    return tuple(str(value) for value in values)
