"""What notebooks show: tables without scripts or styles of their own, every text of the source escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .results import Estimates, Kernel


def time(milliseconds: float | None) -> str:
    """In the unit that suits it."""
    if milliseconds is None:
        return "no time"
    for unit, of_ms in (("s", 1000.0), ("ms", 1.0)):
        if milliseconds >= of_ms:
            return f"{milliseconds / of_ms:.3g} {unit}"
    return f"{milliseconds * 1000:.3g} µs"


def words(name: str | None) -> str:
    """`memory_bandwidth` as one reads it."""
    return "unknown" if name is None else name.replace("_", " ")


def kernel(one: Kernel) -> str:
    """A kernel's figures, each with how sure it is, and its findings."""
    sure = one.certainty
    cycles = None if one.cycles is None else f"{one.cycles:,.0f}"
    interval = None if one.interval is None else " to ".join(f"{end:,.0f}" for end in one.interval)
    parts = sorted(one.breakdown.items(), key=lambda part: -part[1])
    breakdown = ", ".join(f"{words(name)} {value:,.0f}" for name, value in parts if value > 0)
    rows = [
        ("time", time(one.time_ms), sure["time_ms"]),
        ("cycles", cycles or one.why or "unknown", sure["cycles"]),
        ("at least, at most", interval or "unknown", sure["interval"]),
        ("bound by", words(one.bottleneck), sure["bottleneck"]),
        ("parts", breakdown or "unknown", sure["breakdown"]),
        ("grid", _extents(one.grid), sure["grid"]),
        ("block", _extents(one.block), sure["block"]),
        ("registers", str(one.registers), sure["registers"]),
        ("occupancy", f"{one.occupancy:.0%}", sure["occupancy"]),
    ]
    text = f"<b>{escape(one.name)}</b> on {escape(one.gpu)}" + _table(None, rows)
    assumed = [f"{each['symbol']} = {each['value']} ({each['source']})" for each in one.assumptions]
    return text + _list("Assumed", assumed) + _list("Findings", map(_finding, one.findings))


def estimates(all_of_them: Estimates) -> str:
    """A line for each kernel, and the findings."""
    rows = [
        (each.name, each.gpu, _extents(each.grid), _extents(each.block), time(each.time_ms), words(each.bottleneck), f"{each.occupancy:.0%}")
        for each in all_of_them
    ]
    heads = ("kernel", "GPU", "grid", "block", "time (predicted)", "bound by", "occupancy")
    return _table(heads, rows) + _list("Findings", map(_finding, all_of_them.findings))


def _finding(finding: object) -> str:
    return f"{finding.line}:{finding.column} {finding.severity}[{finding.rule}] {finding.message}"  # type: ignore[attr-defined]


def _extents(extents: tuple[int, ...]) -> str:
    kept = list(extents)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return " × ".join(map(str, kept))


def _table(heads: tuple[str, ...] | None, rows: Iterable[tuple[str, ...]]) -> str:
    head = "" if heads is None else f"<thead><tr>{_cells('th', heads)}</tr></thead>"
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"


def _cells(tag: str, texts: Iterable[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def _list(title: str, texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<p>{escape(title)}</p><ul>{items}</ul>" if items else ""
