"""`warplens.sweep`."""

import json
import os
import subprocess
import tempfile
import time
import unittest
from itertools import count, islice
from pathlib import Path

import warplens
from kernels import SCALE, TILED


def configurations():
    for threads in (32, 64, 128, 256, 512, 1024, 2048):
        for tile in (1, 2, 4):
            yield {
                "id": f"{threads}/{tile}",
                "block": threads,
                "grid": (1 << 22) // (threads * tile),
                "defines": {"block_size_x": threads, "TILE": tile, "STRIDE": 1},
                "args": {"n": 1 << 22},
            }


class Sweep(unittest.TestCase):
    def test_it_says_what_the_command_line_says(self):
        found = list(warplens.sweep(TILED, configurations(), kernel="tiled", gpu="rtx-2080-ti"))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "tiled.cu").write_text(TILED)
            lines = "\n".join(json.dumps({**one, "block": [one["block"]], "grid": [one["grid"]]}) for one in configurations())
            words = ["sweep", "tiled.cu", "--kernel", "tiled", "--gpu", "rtx-2080-ti", "--configs", "-"]
            done = subprocess.run(
                [os.environ["WARPLENS_BIN"], *words], cwd=folder, input=lines, text=True, capture_output=True, timeout=120, check=True
            )
        self.assertEqual([one.to_dict() for one in found], [json.loads(line) for line in done.stdout.splitlines()])
        # 2048 threads are no block.
        self.assertEqual([one.id for one in found if not one.valid], ["2048/1", "2048/2", "2048/4"])
        self.assertTrue(all(one.why_invalid for one in found if not one.valid))
        self.assertTrue(all(one.time_ms > 0 and 0 < one.occupancy <= 1 for one in found if one.valid))

    def test_configurations_are_taken_as_they_are_needed(self):
        endless = ({"block": 32 << (at % 6), "grid": 64} for at in count())
        started = time.monotonic()
        first = list(islice(warplens.sweep(SCALE, endless, kernel="scale"), 300))
        self.assertEqual([one.id for one in first], list(range(1, 301)))
        self.assertLess(time.monotonic() - started, 60)

    def test_what_is_wrong_is_named(self):
        for wrong, named in (({"blok": 1}, "blok"), ({"block": 0}, "block"), ({"defines": {"a": []}}, "a"), (3, "3")):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(ValueError, named):
                list(warplens.sweep(SCALE, [wrong], kernel="scale"))
        with self.assertRaisesRegex(ValueError, "one model"):
            warplens.sweep(SCALE, [], kernel="scale", model="all")
        with self.assertRaisesRegex(ValueError, "h10"):
            warplens.sweep(SCALE, [], kernel="scale", gpu="h10")
        # Which kernels there are depends on a configuration's macros.
        [missing] = warplens.sweep(SCALE, [{}], kernel="scales")
        self.assertFalse(missing.valid)
        self.assertIn("scales", missing.why_invalid)
        self.assertEqual(list(warplens.sweep(SCALE, [], kernel="scale")), [])
