"""A process of readers for `test_many_readers`: ten threads that read one table again and again.

Prints how many reads were right, how many seconds it took, and what went wrong.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from lakepass.reader import SharingClient


def main(profile: str, name: str, seconds: float, rows: int) -> None:
    client = SharingClient(profile)
    right, wrong = 0, []
    lock = threading.Lock()
    begun = time.monotonic()

    def read() -> None:
        nonlocal right
        while time.monotonic() - begun < seconds:
            try:
                found = client.table(name).to_arrow().num_rows
                with lock:
                    right += found == rows
                    if found != rows:
                        wrong.append(f"{found} rows")
            except Exception as error:
                with lock:
                    wrong.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=read) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"right": right, "seconds": time.monotonic() - begun, "wrong": wrong}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
