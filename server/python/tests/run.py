"""Every test of this folder; the last line says how many passed."""

import sys
import unittest
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).parent
    suite = unittest.defaultTestLoader.discover(str(here), top_level_dir=str(here))
    result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed")
    sys.exit(0 if result.wasSuccessful() and not result.skipped else 1)
