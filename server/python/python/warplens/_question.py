"""What Python says, as the JSON that the engine reads."""

from __future__ import annotations

import json
import numbers
import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Union

Source = Union[str, "os.PathLike[str]"]
"""A text, or the path of one."""

Extents = Union[int, Sequence[int]]
"""One to three whole numbers."""

_LARGEST = 50 * 1024 * 1024
_NAME = re.compile(r"[A-Za-z_]\w*\Z")


def text_of(source: Source) -> str:
    """The text itself."""
    if isinstance(source, str):
        return source
    if not isinstance(source, os.PathLike):
        raise TypeError(f"source is a text or a path, not {type(source).__name__}")
    path = Path(source)
    if path.is_file() and path.stat().st_size > _LARGEST:
        raise ValueError(f"{path}: files over {_LARGEST >> 20} MiB are not read")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8") from None


def question(
    source: Source,
    *,
    gpu: str | None,
    kernel: str | None,
    model: str,
    language: str | None,
    include_paths: Iterable[str],
    configuration: dict[str, Any],
) -> str:
    """The parameters of a prediction for one text."""
    for name, value in (("gpu", gpu), ("kernel", kernel), ("model", model), ("language", language)):
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name}: a text is needed, not {value!r}")
    if isinstance(include_paths, str):
        raise ValueError("include_paths: a list of folders is needed, not one text")
    return json.dumps(
        {
            "path": None if isinstance(source, str) else os.fspath(source),
            "gpu": gpu,
            "kernel": kernel,
            "model": model,
            "language": language,
            "include_paths": [os.fspath(path) for path in include_paths],
            "configuration": configuration,
        }
    )


def configuration(
    *,
    id: Any = None,
    block: Extents | None = None,
    grid: Extents | None = None,
    args: Mapping[str, int] | None = None,
    defines: Mapping[str, object] | None = None,
    template: Mapping[str, object] | None = None,
    dynamic_shared_bytes: int | None = None,
) -> dict[str, Any]:
    """What one build and one launch of a kernel are given."""
    made: dict[str, Any] = {
        "args": {name: _whole(f"args[{name!r}]", value) for name, value in _names("args", args)},
        "defines": {name: _text(f"defines[{name!r}]", value) for name, value in _names("defines", defines)},
        "template": {name: _text(f"template[{name!r}]", value) for name, value in _names("template", template)},
    }
    if id is not None:
        made["id"] = id
    if block is not None:
        made["block"] = _extents("block", block)
    if grid is not None:
        made["grid"] = _extents("grid", grid)
    if dynamic_shared_bytes is not None:
        made["dynamic_shared_bytes"] = _size("dynamic_shared_bytes", dynamic_shared_bytes, least=0)
    return made


def _names(what: str, given: Mapping[str, Any] | None) -> Iterable[tuple[str, Any]]:
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise ValueError(f"{what}: a dictionary is needed, not {given!r}")
    for name in given:
        if not isinstance(name, str) or not _NAME.match(name):
            raise ValueError(f"{what}: {name!r} is no name")
    return given.items()


def _whole(what: str, value: Any) -> int:
    """A whole number; NumPy's are some as well."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{what}: a whole number is needed, not {value!r}") from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{what}: {number} does not fit into 64 bits")
    return number


def _size(what: str, value: Any, least: int = 1) -> int:
    number = _whole(what, value)
    if not least <= number < 2**32:
        raise ValueError(f"{what}: a size from {least} to {2**32 - 1} is needed, not {number}")
    return number


def _extents(what: str, given: Any) -> list[int]:
    if isinstance(given, (str, bytes)):
        raise ValueError(f"{what}: one to three whole numbers are needed, not {given!r}")
    try:
        sizes = list(given)
    except TypeError:
        sizes = [given]
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{what}: one to three whole numbers are needed, not {len(sizes)}")
    return [_size(what, size) for size in sizes]


def _text(what: str, value: Any) -> str:
    """A macro's value as a compiler is given it."""
    if isinstance(value, str):
        return value
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    # NumPy's truth is no number of Python's.
    if type(value).__name__ in ("bool", "bool_"):
        return str(int(value))
    raise ValueError(f"{what}: a number or a text is needed, not {value!r}")
