"""The programs of docs/python.md, run; and the types, checked."""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import warplens

ROOT = Path(__file__).resolve().parents[3]


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.S | re.M)


class Documentation(unittest.TestCase):
    def test_every_program_runs(self):
        self.assertGreaterEqual(len(blocks("docs/python.md")), 4)
        for page in ("docs/python.md", "README.md", "server/python/README.md"):
            here = os.getcwd()
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                try:
                    # One behind the other, as one reads them.
                    names = {}
                    for at, block in enumerate(blocks(page)):
                        with self.subTest(page=page, block=at), contextlib.redirect_stdout(io.StringIO()):
                            exec(compile(block, f"{page}, block {at}", "exec"), names)
                finally:
                    os.chdir(here)

    def test_it_is_installed_as_the_page_says(self):
        page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
        script = (ROOT / "server/python/test.sh").read_text(encoding="utf-8")
        self.assertIn("pip install ./server/python", page)
        self.assertRegex(script, r"pip\" install [^\n]*\\\n[^\n]* \./server/python\n")

    def test_the_documented_names_are_there(self):
        page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
        for name in warplens.__all__:
            if name.islower():
                self.assertIn(f"warplens.{name}", page)


class Types(unittest.TestCase):
    def test_a_type_checker_believes_them(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program.py"
            program.write_text(
                "import warplens\n"
                "kernel = warplens.estimate('', block=(32, 8))[0]\n"
                "reveal_type(kernel.time_ms)\n"
                "warplens.estimate('', blok=1)\n"
            )
            done = subprocess.run(
                [sys.executable, "-m", "mypy", "--python-version", "3.10", str(program)],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=180,
                check=False,
            )
        self.assertRegex(done.stdout, r'Revealed type is ".*(float \| None|Union\[.*float, None\])"')
        self.assertRegex(done.stdout, r'program.py:4: error: Unexpected keyword argument "blok"')
        self.assertIn("Found 1 error", done.stdout)
