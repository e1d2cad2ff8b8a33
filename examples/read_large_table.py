"""A table larger than memory: batch by batch here, or cut into tasks for other processes."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from lakepass.reader import SharingClient
from lakepass.reader.scan import ScanTask


def count(task: ScanTask) -> int:
    return sum(batch.num_rows for batch in task.to_reader())


if __name__ == "__main__":
    snapshot = SharingClient().table("sales.eu.orders").snapshot()
    rows = sum(batch.num_rows for batch in snapshot.scan(columns=["amount"]).to_reader())
    # A forked process would inherit connections whose threads stay behind: start new ones.
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        parts = list(processes.map(count, snapshot.scan(columns=["amount"]).tasks(target_bytes=64 * 1024)))
    print(f"{rows} rows in one process, {sum(parts)} in {len(parts)} tasks")
