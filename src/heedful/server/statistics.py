"""What the server counts, in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter
from threading import Lock

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
TEXTS = (1, 2, 4, 8, 16, 32, 64)


class Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.total, self.n = bounds, [0] * len(bounds), 0.0, 0

    def add(self, value: float) -> None:
        self.total, self.n = self.total + value, self.n + 1
        for i, bound in enumerate(self.bounds):
            self.counts[i] += value <= bound

    def lines(self, name: str) -> list[str]:
        return [
            f"# TYPE {name} histogram",
            *(f'{name}_bucket{{le="{b:g}"}} {n}' for b, n in zip(self.bounds, self.counts, strict=True)),
            f'{name}_bucket{{le="+Inf"}} {self.n}',
            f"{name}_sum {self.total:.6f}",
            f"{name}_count {self.n}",
        ]


class Statistics:
    """Counts requests, texts and batches; the thread of the model counts, too."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.requests: Counter[tuple[str, int]] = Counter()
        self.texts = self.reloads = self.failed_reloads = self.texts_waiting = 0
        self.seconds, self.batches = Histogram(SECONDS), Histogram(TEXTS)

    def count_request(self, path: str, status: int, seconds: float) -> None:
        with self.lock:
            self.requests[path, status] += 1
            if path == "/predict":
                self.seconds.add(seconds)

    def count_batch(self, texts: int) -> None:
        with self.lock:
            self.texts += texts
            self.batches.add(texts)

    def to_prometheus(self) -> str:
        with self.lock:
            lines = ["# TYPE heedful_requests_total counter"]
            for (path, status), count in sorted(self.requests.items()):
                lines.append(f'heedful_requests_total{{path="{path}",status="{status}"}} {count}')
            for name, kind, value in (
                ("texts_total", "counter", self.texts),
                ("reloads_total", "counter", self.reloads),
                ("failed_reloads_total", "counter", self.failed_reloads),
                ("texts_waiting", "gauge", self.texts_waiting),
            ):
                lines += [f"# TYPE heedful_{name} {kind}", f"heedful_{name} {value}"]
            lines += self.seconds.lines("heedful_predict_seconds") + self.batches.lines("heedful_batch_texts")
        return "\n".join(lines) + "\n"
