"""The engine: questions and answers are JSON. Use the functions of `warplens`."""

from collections.abc import Sequence

__version__: str
DEFAULT_GPU: str
MODELS: list[str]

def estimate(source: str, question: str) -> str: ...
def gpus() -> str: ...

class Sweep:
    def __new__(cls, source: str, question: str, kernel_tuner: bool) -> Sweep: ...
    def predict(self, configurations: Sequence[str]) -> list[str]: ...
