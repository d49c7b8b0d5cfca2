"""Predicts what a CUDA, HIP or OpenCL kernel costs, from its source, without a GPU.

>>> import warplens
>>> kernel = warplens.estimate(source, gpu="h100-sxm5", block=256, grid=4096)[0]
>>> kernel.time_ms, kernel.bottleneck
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from . import _native
from ._question import Extents, Source, configuration, question, text_of
from .results import Estimates, Finding, Gpu, Kernel, Prediction

__version__: str = _native.__version__
DEFAULT_GPU: str = _native.DEFAULT_GPU
"""The GPU where none is named."""
MODELS: tuple[str, ...] = tuple(_native.MODELS)
"""The models by name."""

__all__ = [
    "DEFAULT_GPU",
    "MODELS",
    "Estimates",
    "Finding",
    "Gpu",
    "Kernel",
    "Prediction",
    "estimate",
    "gpus",
    "sweep",
]

_CHUNK = 256
"""Configurations that are predicted side by side."""


def estimate(
    source: Source,
    *,
    gpu: str | None = None,
    kernel: str | None = None,
    block: Extents | None = None,
    grid: Extents | None = None,
    args: dict[str, int] | None = None,
    defines: dict[str, object] | None = None,
    template: dict[str, object] | None = None,
    dynamic_shared_bytes: int | None = None,
    model: str = "auto",
    language: str | None = None,
    include_paths: Iterable[str] = (),
) -> Estimates:
    """The full prediction of the kernels in a text, or in a file where `source` is a path.

    `gpu` is an id of `gpus()`, `DEFAULT_GPU` where none is given. `block` and `grid` are one to three numbers: threads of a block,
    blocks. `args` are integer arguments by the parameter's name, `defines` macros, `template` template arguments. What is not given
    is taken from the source (its launch, its `// warplens:` directives), else assumed, and listed as such. `model` is one of
    `MODELS`, or "all".

    Raises ValueError where the question is wrong (an unknown GPU, kernel or model, sizes that are none, a text without kernels), and
    OSError where a file cannot be read.
    """
    given = configuration(
        block=block,
        grid=grid,
        args=args,
        defines=defines,
        template=template,
        dynamic_shared_bytes=dynamic_shared_bytes,
    )
    asked = question(
        source,
        gpu=gpu,
        kernel=kernel,
        model=model,
        language=language,
        include_paths=include_paths,
        configuration=given,
    )
    return Estimates(json.loads(_native.estimate(text_of(source), asked)), model)


def sweep(
    source: Source,
    configurations: Iterable[dict[str, Any]],
    *,
    kernel: str,
    gpu: str | None = None,
    defines: dict[str, object] | None = None,
    model: str = "auto",
    language: str | None = None,
    include_paths: Iterable[str] = (),
) -> Iterator[Prediction]:
    """What is predicted of one kernel under many configurations, in their order, a few hundred at a time on all cores.

    A configuration is a dictionary with any of `id`, `block`, `grid`, `args`, `defines`, `template` and `dynamic_shared_bytes`, as
    `estimate` takes them; `defines` beside them hold for all. One that cannot be launched or predicted has a `Prediction` too, which
    is not `valid` and says why. Configurations are taken from the iterator as they are needed.

    Raises ValueError as `estimate` does, and for a configuration that is none.
    """
    return _sweep(
        source,
        (configuration(**_checked(one)) for one in configurations),
        kernel_tuner=False,
        gpu=gpu,
        kernel=kernel,
        defines=defines,
        model=model,
        language=language,
        include_paths=include_paths,
    )


def gpus() -> list[Gpu]:
    """The GPUs that are known: those that come with warplens, and the profiles of the user and of the current folder."""
    return [Gpu(one) for one in json.loads(_native.gpus())["gpus"]]


def _sweep(
    source: Source,
    configurations: Iterable[dict[str, Any]],
    *,
    kernel_tuner: bool,
    defines: dict[str, object] | None,
    **asked: Any,
) -> Iterator[Prediction]:
    everywhere = configuration(defines=defines)
    subject = _native.Sweep(text_of(source), question(source, configuration=everywhere, **asked), kernel_tuner)

    def predictions() -> Iterator[Prediction]:
        all_of_them = iter(configurations)
        number = 0
        while chunk := list(islice(all_of_them, _CHUNK)):
            for one in chunk:
                number += 1
                one.setdefault("id", number)
            for line in subject.predict([json.dumps(one) for one in chunk]):
                yield Prediction(json.loads(line))

    return predictions()


def _checked(one: dict[str, Any]) -> dict[str, Any]:
    known = ("id", "block", "grid", "args", "defines", "template", "dynamic_shared_bytes")
    if not isinstance(one, dict):
        raise ValueError(f"a configuration is a dictionary, not {one!r}")
    for key in one:
        if key not in known:
            raise ValueError(f"a configuration has no {key!r} (it has {', '.join(known)})")
    return one
