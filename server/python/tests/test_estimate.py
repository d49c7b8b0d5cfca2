"""`warplens.estimate` and `warplens.gpus`."""

import json
import os
import shutil
import subprocess
import tempfile
import threading
import unittest
from html.parser import HTMLParser
from pathlib import Path

import warplens
from kernels import SCALE

KERNELS = Path(__file__).resolve().parents[3] / "tests" / "kernels"
SERVER = os.environ["WARPLENS_BIN"]


class Estimate(unittest.TestCase):
    def test_a_kernel_from_a_string(self):
        kernel = warplens.estimate(SCALE, gpu="h100-sxm5", block=128, grid=8192, args={"n": 1 << 20})[0]
        self.assertEqual((kernel.name, kernel.gpu), ("scale", "h100-sxm5"))
        self.assertEqual((kernel.block, kernel.grid), ((128, 1, 1), (8192, 1, 1)))
        self.assertEqual(kernel.bottleneck, "memory_bandwidth")
        # 8 MiB through 3.35 TB/s is 2.5 µs, launching takes some more; no model is ten times off.
        self.assertTrue(0.0025 < kernel.time_ms < 0.025, kernel.time_ms)
        parts = {name: value for name, value in kernel.breakdown.items() if name != "launch"}
        self.assertAlmostEqual(sum(parts.values()) / kernel.cycles, 1.0, places=6)
        self.assertLessEqual(kernel.interval[0], kernel.cycles)
        self.assertLessEqual(kernel.cycles, kernel.interval[1])
        load = kernel.accesses[0]
        self.assertEqual((load["transactions_per_request"], load["certainty"]), (4.0, "exact"))

    def test_a_figure_says_how_sure_it_is(self):
        given = warplens.estimate(SCALE, block=256, grid=64, args={"n": 4096})[0]
        self.assertEqual(given.certainty["block"], "exact")
        self.assertEqual(given.certainty["time_ms"], "assumed")
        self.assertEqual(given.certainty["registers"], "assumed")
        self.assertNotIn("n", [one["symbol"] for one in given.assumptions])
        assumed = warplens.estimate(SCALE)[0]
        self.assertEqual(assumed.certainty["block"], "assumed")
        self.assertLessEqual({"block", "grid", "n"}, {one["symbol"] for one in assumed.assumptions})
        # This model knows nothing of a GPU without its figures: no time is no number.
        unknown = warplens.estimate(SCALE, gpu="arc-a770", model="mwp-cwp")[0]
        if unknown.time_ms is None:
            self.assertEqual(unknown.certainty["time_ms"], "unknown")
            self.assertTrue(unknown.why)

    def test_macros_template_arguments_and_a_kernel_by_name(self):
        source = """
            template <int WIDTH> __global__ void wide(float* x) { for (int k = 0; k < WIDTH; k++) x[threadIdx.x + k * 32] = FILL; }
            __global__ void other(float* x) { x[threadIdx.x] = FILL; }
        """
        both = warplens.estimate(source, block=32, grid=1, defines={"FILL": 1.5}, template={"WIDTH": 7})
        self.assertEqual([kernel.name for kernel in both], ["wide", "other"])
        stores = {count["class"]: count["value"] for count in both["wide"].to_dict()["counts"]}
        self.assertEqual(stores["global_store"], 7 * 32)
        only = warplens.estimate(source, kernel="other", defines={"FILL": 1.5})
        self.assertEqual([kernel.name for kernel in only], ["other"])
        with self.assertRaises(KeyError):
            only["wide"]

    def test_opencl_by_content_and_by_name(self):
        source = "__kernel void twice(__global float* x) { x[get_global_id(0)] *= 2.0f; }"
        self.assertEqual(warplens.estimate(source)[0].to_dict()["language"], "opencl")
        self.assertEqual(warplens.estimate(SCALE, language="hip")[0].to_dict()["language"], "hip")

    def test_what_is_wrong_is_named(self):
        wrong = [
            (dict(gpu="h10"), "h10"),
            (dict(model="guess"), "mwp-cwp"),
            (dict(kernel="scales"), "scales"),
            (dict(language="fortran"), "fortran"),
            (dict(block=0), "block"),
            (dict(block=[1, 2, 3, 4]), "block"),
            (dict(block="256"), "block"),
            (dict(grid=-1), "grid"),
            (dict(grid=1.5), "grid"),
            (dict(args={"n": "many"}), "n"),
            (dict(args={"n": 1 << 64}), "64 bits"),
            (dict(args=[1]), "args"),
            (dict(defines={"A B": 1}), "A B"),
            (dict(defines={"A": object()}), "A"),
            (dict(dynamic_shared_bytes=-1), "dynamic_shared_bytes"),
            (dict(include_paths="folder"), "include_paths"),
        ]
        for asked, named in wrong:
            with self.subTest(asked=asked), self.assertRaises(ValueError) as caught:
                warplens.estimate(SCALE, **asked)
            self.assertIn(named, str(caught.exception))
        for source in ("", "int main() { return 0; }", "\x00\x01", "}}}}((((" * 1000):
            with self.subTest(source=source[:10]), self.assertRaisesRegex(ValueError, "no kernel"):
                warplens.estimate(source)
        with self.assertRaises(TypeError):
            warplens.estimate(b"bytes")
        with self.assertRaises(FileNotFoundError):
            warplens.estimate(Path("no/such/file.cu"))

    def test_deep_nesting_and_odd_sources_end_no_process(self):
        deep = "__global__ void deep(int* x) { x[0] = " + "(" * 5000 + "1" + ")" * 5000 + "; }"
        cut = SCALE[: SCALE.index("threadIdx")]
        surrogate = "__global__ void k(int* x) { x[0] = 1; } // \ud800"
        for source in (deep, cut, surrogate):
            with self.subTest(source=source[:40].encode("utf-8", "replace")):
                try:
                    warplens.estimate(source)
                except ValueError:
                    pass

    def test_a_file_that_is_not_text(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.cu"
            path.write_bytes(b"\xff\xfe_\x00")
            with self.assertRaisesRegex(ValueError, "UTF-8"):
                warplens.estimate(path)

    def test_threads_get_what_one_gets(self):
        alone = [warplens.estimate(SCALE, block=size, grid=64).to_dict() for size in (32, 64, 128, 256)]
        answers = {}

        def ask(size, at):
            answers[at] = warplens.estimate(SCALE, block=size, grid=64).to_dict()

        threads = [threading.Thread(target=ask, args=(32 << at % 4, at)) for at in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual([answers.get(at) for at in range(16)], alone * 4)

    def test_data_is_the_callers_own(self):
        answer = warplens.estimate(SCALE)
        answer.to_dict()["results"].clear()
        answer[0].to_dict().clear()
        answer[0].breakdown.clear()
        self.assertEqual(answer[0].name, "scale")
        self.assertTrue(answer[0].breakdown)
        self.assertEqual(answer, warplens.estimate(SCALE))
        json.dumps(answer.to_dict())


class Same(unittest.TestCase):
    """What the command line says of the same files."""

    def run_server(self, *words, folder):
        done = subprocess.run([SERVER, *words, "--format", "json"], cwd=folder, capture_output=True, timeout=120, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)

    def test_every_kernel_of_the_repository(self):
        with tempfile.TemporaryDirectory() as folder:
            # A project's folder, so that the command line looks nowhere else either.
            shutil.copytree(KERNELS, Path(folder), dirs_exist_ok=True)
            (Path(folder) / "warplens.toml").write_text("")
            here = os.getcwd()
            os.chdir(folder)
            self.addCleanup(os.chdir, here)
            files = sorted(Path().glob("*.c[ul]"))
            self.assertGreater(len(files), 25)
            compared = 0
            for file in files:
                with self.subTest(file=str(file)):
                    ours = warplens.estimate(file, gpu="rtx-3090")
                    theirs = self.run_server("estimate", str(file), "--gpu", "rtx-3090", folder=folder)
                    self.assertEqual(ours.to_dict(), theirs)
                    # Of a kernel with several launches `check` looks at one.
                    if all(kernel.to_dict()["variant"]["of"] == 1 for kernel in ours):
                        found = self.run_server("check", str(file), "--gpu", "rtx-3090", folder=folder)
                        self.assertEqual([one.to_dict() for one in ours.findings], found["diagnostics"])
                        compared += 1
            self.assertGreater(compared, 15)
            os.chdir(here)


class Shown(unittest.TestCase):
    def test_a_repr_is_a_line(self):
        answer = warplens.estimate(SCALE, block=256, grid=64)
        for text in (repr(answer), repr(answer[0])):
            self.assertIn("scale", text)
            self.assertLess(len(text), 200)
            self.assertNotIn("\n", text)

    def test_html_is_whole_and_holds_nothing_of_the_source_as_markup(self):
        source = """
            #define EVIL(x) x
            __global__ void k(float* x, int n) {
                x[threadIdx.x * n /* <script>alert(1)</script><img src=x onerror=y> */] = threadIdx.x < n && n > 0 ? 1.0 : x[0];
            }
        """
        answer = warplens.estimate(source, block=256, grid=1000, args={"n": 33})
        self.assertTrue(answer.findings)
        for html in (answer._repr_html_(), answer[0]._repr_html_()):
            reader = Tags()
            reader.feed(html)
            self.assertEqual(reader.open, [])
            self.assertLessEqual(reader.seen, {"b", "table", "thead", "tbody", "tr", "th", "td", "p", "ul", "li"})
        self.assertIn("&amp;", _html_of_text("a & b"))
        self.assertIn("&lt;img", _html_of_text('<img src="x">'))

    def test_a_kernels_html_says_how_sure(self):
        html = warplens.estimate(SCALE)[0]._repr_html_()
        for word in ("assumed", "Assumed", "time", "registers", "occupancy"):
            self.assertIn(word, html)


def _html_of_text(text):
    """A document whose every text is this one, as a notebook shows it."""
    document = warplens.estimate(SCALE).to_dict()
    result = document["results"][0]
    result["kernel"] = result["gpu"] = text
    result["assumptions"] = [{"symbol": text, "value": text, "source": text}]
    finding = dict(rule=text, severity=text, file=text, line=99, column=1, end_line=9, end_column=9, message=text, gain=1.0)
    document["diagnostics"] = [finding]
    answer = warplens.Estimates(document)
    return answer._repr_html_() + answer[0]._repr_html_()


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        assert not attrs, attrs
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


class Gpus(unittest.TestCase):
    def test_they_are_those_of_the_command_line(self):
        said = json.loads(subprocess.run([SERVER, "gpus", "--format", "json"], capture_output=True, timeout=60, check=True).stdout)
        self.assertEqual([gpu.to_dict() for gpu in warplens.gpus()], said["gpus"])
        known = {gpu.id: gpu for gpu in warplens.gpus()}
        self.assertIn(warplens.DEFAULT_GPU, known)
        self.assertEqual(known["h100-sxm5"].figures["sms"]["value"], 132)
        self.assertTrue(known["h100-sxm5"].figures["sms"]["source"])
