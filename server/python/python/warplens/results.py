"""What was predicted, as plain data.

Every object keeps the dictionary of the JSON that it was made of (`to_dict`, as `warplens estimate --format json` and its schema have
it) and names what one mostly looks at.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Union, overload

from . import _html

Certainty = str
""" "exact": counted, and no assumed value could change it. "assumed": a model, a launch or an argument was assumed. "unknown": there
is no figure, and it is None."""


class Record:
    """A dictionary of the JSON."""

    __slots__ = ("_data",)

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def to_dict(self) -> dict[str, Any]:
        """The JSON's dictionary, the caller's own copy."""
        return copy.deepcopy(self._data)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._data == self._data  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]


class Finding(Record):
    """Something that costs, or cannot work."""

    __slots__ = ()

    @property
    def rule(self) -> str:
        """The rule's id; `warplens explain` has its page."""
        return self._data["rule"]

    @property
    def severity(self) -> str:
        """ "error", "warning", "information" or "hint"."""
        return self._data["severity"]

    @property
    def line(self) -> int:
        """From 1."""
        return self._data["line"]

    @property
    def column(self) -> int:
        """In bytes of UTF-8, from 1."""
        return self._data["column"]

    @property
    def message(self) -> str:
        """The number, the cause, the assumption."""
        return self._data["message"]

    @property
    def gain(self) -> float:
        """How many times faster the kernel is predicted without the cause; 1.0 where it is not."""
        return self._data["gain"]

    def __repr__(self) -> str:
        return f"<{self.severity}[{self.rule}] {self.line}:{self.column} {self.message}>"


class Kernel(Record):
    """One kernel under one launch on one GPU."""

    __slots__ = ("_model", "findings")

    def __init__(self, data: dict[str, Any], findings: Sequence[Finding], model: str) -> None:
        super().__init__(data)
        self.findings = list(findings)
        """The findings of the source that this kernel is in."""
        self._model = model

    @property
    def name(self) -> str:
        """The kernel's plain name."""
        return self._data["kernel"]

    @property
    def gpu(self) -> str:
        """The GPU's id."""
        return self._data["gpu"]

    @property
    def block(self) -> tuple[int, ...]:
        """Threads of a block."""
        return tuple(self._data["launch"]["block"])

    @property
    def grid(self) -> tuple[int, ...]:
        """Blocks."""
        return tuple(self._data["launch"]["grid"])

    @property
    def estimate(self) -> dict[str, Any]:
        """The estimate of the requested model; of "all", that of `auto`."""
        name = "auto" if self._model == "all" else self._model
        return self._data["estimates"].get(name, {})

    @property
    def cycles(self) -> float | None:
        """Cycles of the SM's clock, without the launch's overhead."""
        return self.estimate.get("cycles")

    @property
    def time_ms(self) -> float | None:
        """Milliseconds, as a profiler's duration of the kernel: without the launch's overhead."""
        return self.estimate.get("time_ms")

    @property
    def bottleneck(self) -> str | None:
        """The largest part of the breakdown."""
        return self.estimate.get("bottleneck")

    @property
    def breakdown(self) -> dict[str, float]:
        """Parts of the cycles; they add up to them, `launch` excepted."""
        return dict(self.estimate.get("breakdown") or {})

    @property
    def interval(self) -> tuple[float, float] | None:
        """Cycles at least and at most, over what may overlap and what was assumed."""
        interval = self.estimate.get("interval")
        return None if interval is None else (interval[0], interval[1])

    @property
    def why(self) -> str | None:
        """Why the model gives no time, where it gives none."""
        return self.estimate.get("why")

    @property
    def registers(self) -> int:
        """Registers of a thread."""
        return self._data["resources"]["registers_per_thread"]

    @property
    def occupancy(self) -> float:
        """Resident warps over the most that the GPU holds, from 0 to 1."""
        return self._data["occupancy"]["fraction"]

    @property
    def assumptions(self) -> list[dict[str, str]]:
        """Every assumed number: `symbol`, `value`, `source`."""
        return copy.deepcopy(self._data["assumptions"])

    @property
    def accesses(self) -> list[dict[str, Any]]:
        """The accesses of memory, each with its own `certainty`."""
        return copy.deepcopy(self._data["accesses"])

    @property
    def certainty(self) -> dict[str, Certainty]:
        """How sure each figure is. Times are never exact: they are a model's answer. Accesses, branches and counts say it themselves."""
        launch = self._data["launch"]
        block = _sure(launch["block_source"] != "assumed")
        grid = _sure(launch["grid_source"] != "assumed")
        registers = _sure(self._data["resources"]["registers_source"] != "estimated")
        known = _sure(registers == "exact" and block == "exact")
        modelled = {
            name: "unknown" if self.estimate.get(name) is None else "assumed"
            for name in ("cycles", "time_ms", "bottleneck", "interval", "breakdown")
        }
        return {"block": block, "grid": grid, **modelled, "registers": registers, "occupancy": known}

    def __repr__(self) -> str:
        return f"<{self.name} on {self.gpu}: {_html.time(self.time_ms)}, {_html.words(self.bottleneck)}>"

    def _repr_html_(self) -> str:
        return _html.kernel(self)


class Estimates(Record, Sequence):  # type: ignore[type-arg]
    """The kernels of a text, each launch of each: a sequence, which also knows them by name."""

    __slots__ = ("_kernels", "findings")

    def __init__(self, document: dict[str, Any], model: str = "auto") -> None:
        super().__init__(document)
        self.findings = [Finding(one) for one in document["diagnostics"]]
        """The findings of the text."""
        results = document["results"]
        starts = sorted({one["line"] for one in results})
        self._kernels = [Kernel(one, self._within(one["line"], starts), model) for one in results]

    def _within(self, line: int, starts: list[int]) -> list[Finding]:
        """The findings from a kernel's line to the next kernel's."""
        after = next((start for start in starts if start > line), None)
        return [one for one in self.findings if line <= one.line and (after is None or one.line < after)]

    @property
    def missing_includes(self) -> list[str]:
        """Headers that were not found, as they are spelled."""
        return list(self._data["missing_includes"])

    def __len__(self) -> int:
        return len(self._kernels)

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self._kernels)

    @overload
    def __getitem__(self, which: Union[int, str]) -> Kernel: ...
    @overload
    def __getitem__(self, which: slice) -> list[Kernel]: ...
    def __getitem__(self, which: Union[int, str, slice]) -> Union[Kernel, list[Kernel]]:
        """By number, or by a kernel's name: the first launch of it."""
        if isinstance(which, str):
            for kernel in self._kernels:
                if kernel.name == which:
                    return kernel
            raise KeyError(which)
        return self._kernels[which]

    def __repr__(self) -> str:
        return f"<Estimates: {', '.join(map(repr, self._kernels[:4]))}{', …' if len(self) > 4 else ''}>"

    def _repr_html_(self) -> str:
        return _html.estimates(self)


class Prediction(Record):
    """One configuration of a sweep."""

    __slots__ = ()

    @property
    def id(self) -> Any:
        """What the configuration is called; its number, from 1, where it has no name."""
        return self._data["id"]

    @property
    def valid(self) -> bool:
        """False where it cannot be launched, or nothing is predicted."""
        return self._data["valid"]

    @property
    def why_invalid(self) -> str | None:
        """Why not."""
        return self._data["why_invalid"]

    @property
    def time_ms(self) -> float | None:
        """Milliseconds, as a profiler's duration of the kernel: without the launch's overhead."""
        return self._data["time_ms"]

    @property
    def cycles(self) -> float | None:
        """Cycles of the SM's clock."""
        return self._data["cycles"]

    @property
    def bottleneck(self) -> str | None:
        """What most of the time goes to."""
        return self._data["bottleneck"]

    @property
    def registers(self) -> int | None:
        """Registers of a thread."""
        return self._data["registers_per_thread"]

    @property
    def shared_bytes(self) -> int | None:
        """Shared memory of a block, static and dynamic."""
        return self._data["shared_bytes"]

    @property
    def occupancy(self) -> float | None:
        """Resident warps over the most that the GPU holds, from 0 to 1."""
        return self._data["occupancy"]

    def __repr__(self) -> str:
        said = _html.time(self.time_ms) if self.valid else f"not valid: {self.why_invalid}"
        return f"<{self.id}: {said}>"


class Gpu(Record):
    """A GPU that is known."""

    __slots__ = ()

    @property
    def id(self) -> str:
        """As `estimate` takes it."""
        return self._data["id"]

    @property
    def name(self) -> str:
        """As its vendor calls it."""
        return self._data["name"]

    @property
    def architecture(self) -> str:
        """Its generation."""
        return self._data["architecture"]

    @property
    def figures(self) -> dict[str, dict[str, Any]]:
        """Every figure by name: `value`, `unit`, `source`."""
        return copy.deepcopy(self._data["figures"])

    def __repr__(self) -> str:
        return f"<{self.id}: {self.name}>"


def _sure(exact: bool) -> Certainty:
    return "exact" if exact else "assumed"
