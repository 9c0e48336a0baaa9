"""A job on a small Spark cluster of two executors, one of which is killed in the middle of writing: a program."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from keygraph.summaries.spark import SparkJob, begun, summarize
from keygraph.summaries.work import GroupRow
from keygraph.summaries.writing import WriteOptions
from tests.keygraph.summarized import AT

_ROWS = 20
"""The rows after which the executor is killed, in the first of the partitions that have so many."""


@dataclass(frozen=True)
class KilledJob(SparkJob):
    """A job of which one executor is killed once."""

    killed: str = ""
    """The file that says so."""

    def written(self, rows: Iterable[tuple[GroupRow, None]], *, parts: int) -> Iterator[Any]:
        some = [*rows]
        if len(some) >= _ROWS and self._is_first():
            # What is written before the end stays, and is written again by another executor.
            [*super().written(some[:_ROWS], parts=parts)]
            os.kill(_parent(os.getppid()), signal.SIGKILL)
            signal.pause()
        yield from super().written(some, parts=parts)

    def _is_first(self) -> bool:
        try:
            Path(self.killed).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def _parent(process: int) -> int:
    """Returns the parent of a process: that of Spark's daemon for Python is the executor."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def main(model: str, address: str, killed: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    pyspark: Any = import_module("pyspark")
    settings = pyspark.SparkConf().setMaster("local-cluster[2,1,512]").set("spark.executor.memory", "512m")
    context = pyspark.SparkContext(conf=settings.set("spark.ui.enabled", "false"))
    context.setLogLevel("ERROR")
    job, rows, _ = begun(context, KilledJob(model, address, AT, WriteOptions(), killed=killed), None, 4)
    counted = sum(summarize(context, job, rows, 4), Counter[str]())
    sys.stdout.write(f"{dict(counted)}\n")
    logs = Path(pyspark.__file__).parent / "work" / context.applicationId
    context.stop()
    shutil.rmtree(logs, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
