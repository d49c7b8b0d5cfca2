"""How much tuning time a predicted pruning saves, and what it costs: on a table of measured times.

The table (CSV, may be gzipped) has a row for each configuration: `kernel`, `defines` (`-Dname=value …`, the parameters), `measured_ms` or
`median_ms`, `n_runs`, and `valid`, which is 0 where the configuration could not be built or launched. Times of building are in no such table:
builds are counted.

    python pruned_tuning.py TABLE.csv.gz kernel.cu --gpu rtx-2080-ti --problem 4096,4096 \\
        --divide-x block_size_x,tile_size_x --divide-y block_size_y,tile_size_y --keep 0.05
"""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from warplens.kernel_tuner import prune


@dataclass
class Row:
    """One measured configuration."""

    values: dict[str, int]
    milliseconds: float | None
    """`None` where it could not be built or launched."""
    runs: int

    @property
    def key(self) -> tuple[int, ...]:
        return tuple(self.values.values())

    @property
    def spent(self) -> float:
        """Seconds of the GPU."""
        return (self.milliseconds or 0.0) * self.runs / 1000


def read(table: Path) -> tuple[str, list[Row]]:
    """The kernel's name and the rows."""
    rows = []
    kernel = ""
    with (gzip.open if table.suffix == ".gz" else open)(table, "rt", newline="") as lines:
        for line in csv.DictReader(lines):
            kernel = line["kernel"]
            values = {}
            for word in line["defines"].split():
                name, _, value = word.removeprefix("-D").partition("=")
                values[name] = int(value)
            measured = line.get("median_ms") or line["measured_ms"]
            valid = line["valid"] == "1" and measured
            rows.append(Row(values, float(measured) if valid else None, int(line.get("n_runs") or 1)))
    return kernel, rows


def argument(word: str) -> tuple[str, int]:
    """`NAME=VALUE`."""
    name, _, value = word.partition("=")
    return name, int(value)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("table", type=Path)
    options.add_argument("source", type=Path)
    options.add_argument("--gpu", required=True)
    options.add_argument("--problem", required=True, help="its size, X[,Y[,Z]]")
    options.add_argument("--divide-x", help="the parameters that divide it, NAME[,NAME…]; the block's size by default")
    options.add_argument("--divide-y")
    options.add_argument("--divide-z")
    options.add_argument(
        "--arg", action="append", default=[], type=argument, metavar="NAME=VALUE", help="an integer argument (repeatable)"
    )
    options.add_argument("--keep", type=float, default=0.05, help="a share of the configurations (0.05)")
    given = options.parse_args()

    try:
        kernel, rows = read(given.table)
    except (OSError, KeyError, ValueError) as error:
        print(f"{given.table}: {error!r}", file=sys.stderr)
        return 2
    measured = [row for row in rows if row.milliseconds is not None]
    if not measured:
        print(f"{given.table}: no configuration was measured", file=sys.stderr)
        return 2

    def divisors(names: str | None) -> list[str] | None:
        return names.split(",") if names else None

    space = {row.key for row in rows}
    names = list(rows[0].values)

    def was_measured(values: dict[str, int]) -> bool:
        return tuple(values[name] for name in names) in space

    started = time.perf_counter()
    kept = prune(
        kernel,
        given.source,
        tuple(int(size) for size in given.problem.split(",")),
        {name: sorted({row.values[name] for row in rows}) for name in names},
        restrictions=was_measured,
        gpu=given.gpu,
        args=dict(given.arg),
        keep=given.keep,
        grid_div_x=divisors(given.divide_x),
        grid_div_y=divisors(given.divide_y),
        grid_div_z=divisors(given.divide_z),
    )
    took = time.perf_counter() - started

    left = [row for row in rows if row.values in kept]
    found = [row for row in left if row.milliseconds is not None]
    best = min(row.milliseconds for row in measured)
    everything, something = sum(row.spent for row in rows), sum(row.spent for row in left)
    print(f"kernel                {kernel} on {given.gpu}")
    print(f"configurations        {len(rows)}, of which {len(rows) - len(measured)} could not be built or launched")
    print(f"kept                  {len(left)}, of which {len(left) - len(found)} could not be built or launched")
    print(f"predicted in          {took:.1f} s, without a GPU")
    print(f"builds saved          {len(rows) - len(left)} of {len(rows)}")
    print(f"GPU time of the runs  {something:.2f} s instead of {everything:.2f} s: {1 - something / everything:.1%} saved")
    if not found:
        print("best kept             none: no kept configuration was measured")
        return 1
    chosen = min(row.milliseconds for row in found)
    print(f"best kept             {chosen:.4f} ms; the best of all {best:.4f} ms: {chosen / best - 1:.1%} slower")
    first = next(row for row in rows if row.values == kept.configurations[0])
    shown = "could not be launched" if first.milliseconds is None else f"{first.milliseconds:.4f} ms, {first.milliseconds / best - 1:.1%} slower"
    print(f"predicted fastest     {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
