"""`warplens.kernel_tuner`, with Kernel Tuner itself."""

import contextlib
import csv
import gzip
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import kernel_tuner
import numpy
from kernels import TILED

from warplens.kernel_tuner import prune

N = 1 << 22
SPACE = {"block_size_x": [32, 64, 128, 256, 512, 1024, 2048], "TILE": [1, 2, 4], "STRIDE": [1, 8]}
EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "pruned_tuning.py"


def kept(**more):
    asked = dict(gpu="rtx-2080-ti", grid_div_x=["block_size_x", "TILE"], args={"n": 8 * N}, defines={})
    return prune("tiled", TILED, N, SPACE, **{**asked, **more})


class Prune(unittest.TestCase):
    def test_the_predicted_fastest_are_kept(self):
        result = kept(keep=0.25, max_threads=2048)
        self.assertEqual((result.seen, len(result.invalid), len(result)), (42, 6, 9))
        self.assertTrue(all(values["STRIDE"] == 1 for values in result), list(result))
        times = [one.time_ms for one in result.predictions]
        self.assertEqual(times, sorted(times))
        self.assertEqual(len(kept(keep=3)), 3)
        self.assertEqual(len(kept(keep=1.0)), 36)

    def test_a_configuration_is_kept_or_not(self):
        result = kept(keep=3)
        inside = result.configurations[0]
        self.assertIn(inside, result)
        self.assertIn({name: numpy.int64(value) for name, value in inside.items()}, result)
        self.assertNotIn({**inside, "STRIDE": 8}, result)
        self.assertNotIn({}, result)
        self.assertNotIn(3, result)

    def test_kernel_tuner_measures_what_is_kept(self):
        result = kept(keep=4, restrictions=["block_size_x < 1024"])
        self.assertTrue(all(values["block_size_x"] < 1024 for values in result))
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder) / "cache.json"
            cache.write_text(json.dumps(measured()))
            for restrictions in (result.restriction, [result.restriction], ["block_size_x < 1024", result.restriction]):
                with contextlib.redirect_stdout(io.StringIO()):
                    found, _ = kernel_tuner.tune_kernel(
                        "tiled",
                        TILED,
                        N,
                        [],
                        SPACE,
                        grid_div_x=["block_size_x", "TILE"],
                        restrictions=restrictions,
                        lang="CUDA",
                        simulation_mode=True,
                        cache=str(cache),
                    )
                run = [tuple(one[name] for name in SPACE) for one in found]
                self.assertEqual(sorted(run), sorted(tuple(values.values()) for values in result))

    def test_unroll_factors_of_none_are_taken_out(self):
        source = """
            __global__ void sum(float* out, const float* in) {
                float s = 0.0f;
                #pragma unroll loop_unroll_factor_k
                for (int k = 0; k < 64; k++) s += in[k * 4096 + blockIdx.x * block_size_x + threadIdx.x];
                out[blockIdx.x * block_size_x + threadIdx.x] = s;
            }
        """
        result = prune("sum", source, 4096, {"block_size_x": [64], "loop_unroll_factor_k": [0, 1, 64]}, keep=1.0)
        self.assertEqual((len(result), len(result.invalid)), (3, 0))

    def test_what_is_wrong_is_named(self):
        for wrong, named in (
            (dict(keep=0), "keep"),
            (dict(keep=0.0), "keep"),
            (dict(keep=1.5), "keep"),
            (dict(keep="all"), "keep"),
            (dict(gpu="rtx-2080"), "rtx-2080"),
            (dict(restrictions=["block_size_x < 0"]), "no configurations"),
            (dict(defines={"block_size_y": 1}, restrictions=["block_size_x > 1024"], max_threads=2048), "2048"),
        ):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(ValueError, named):
                kept(**wrong)
        with self.assertRaisesRegex(ValueError, "no kernel named"):
            prune("tield", TILED, N, SPACE)
        with self.assertRaisesRegex(ValueError, "tune_params"):
            prune("tiled", TILED, N, {})


class Example(unittest.TestCase):
    def table(self, folder, rows):
        path = Path(folder) / "measured.csv.gz"
        with gzip.open(path, "wt", newline="") as lines:
            out = csv.writer(lines)
            out.writerow(["kernel", "defines", "measured_ms", "median_ms", "n_runs", "valid"])
            out.writerows(rows)
        (Path(folder) / "tiled.cu").write_text(TILED)
        return path

    def run_example(self, folder, *words):
        asked = ["--gpu", "rtx-2080-ti", "--problem", str(N), "--divide-x", "block_size_x,TILE", "--arg", f"n={8 * N}", *words]
        command = [sys.executable, str(EXAMPLE), str(Path(folder) / "measured.csv.gz"), str(Path(folder) / "tiled.cu"), *asked]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def test_it_says_what_was_saved(self):
        with tempfile.TemporaryDirectory() as folder:
            # What has stride 8 takes 8 ms, the others 1 ms; 2048 threads cannot be launched.
            rows = []
            for values in space():
                defines = " ".join(f"-D{name}={value}" for name, value in values.items())
                launched = values["block_size_x"] <= 1024
                rows.append(["tiled", defines, values["STRIDE"], "", 10, 1] if launched else ["tiled", defines, "", "", "", 0])
            self.table(folder, rows)
            done = self.run_example(folder, "--keep", "0.25")
        self.assertEqual(done.returncode, 0, done.stderr)
        # 18 x 10 x (1 + 8) ms in all; 9 of stride 1 are kept.
        self.assertRegex(done.stdout, r"configurations +42, of which 6 could not")
        self.assertRegex(done.stdout, r"kept +9, of which 0 could not")
        self.assertRegex(done.stdout, r"builds saved +33 of 42")
        self.assertRegex(done.stdout, r"0\.09 s instead of 1\.62 s: 94\.4% saved")
        self.assertRegex(done.stdout, r"best kept +1\.0000 ms; the best of all 1\.0000 ms: 0\.0% slower")

    def test_a_table_that_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            self.table(folder, [])
            done = self.run_example(folder)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("no configuration was measured", done.stderr)
            (Path(folder) / "measured.csv.gz").unlink()
            self.assertEqual(self.run_example(folder).returncode, 2)


def space():
    for block in SPACE["block_size_x"]:
        for tile in SPACE["TILE"]:
            for stride in SPACE["STRIDE"]:
                yield {"block_size_x": block, "TILE": tile, "STRIDE": stride}


def measured():
    """A cache file of Kernel Tuner for the whole space, its times made up."""
    times = {"compile_time": 1.0, "verification_time": 0.0, "benchmark_time": 1.0, "strategy_time": 0.0, "framework_time": 0.0}
    cache = {
        ",".join(map(str, values.values())): {**values, "time": 1.0, "times": [1.0], "timestamp": "2000-01-01 00:00:00+00:00", **times}
        for values in space()
    }
    return {
        "device_name": "made up",
        "kernel_name": "tiled",
        "problem_size": N,
        "tune_params_keys": list(SPACE),
        "tune_params": SPACE,
        "objective": "time",
        "cache": cache,
    }
