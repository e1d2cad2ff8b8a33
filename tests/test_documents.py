"""The runner of documents finds every block, runs what it should, and fails when a block does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import documents

_DOCUMENT = """
# Title

```python
answer = 6 * 7
```

Text.

```yaml
key: value
```

```bash
echo first > first.txt
```

```console
$ cat first.txt
first
$ echo second \\
>   > second.txt
```

<!-- not run: it would take all day -->

```bash
sleep 86400
```

```python
from pathlib import Path
assert answer == 42
assert Path("second.txt").read_text() == "second\\n"
```
"""


def _run(text: str, folder: Path) -> None:
    document = folder / "DOCUMENT.md"
    document.write_text(text)
    documents.run(document, folder, dict(os.environ), seconds=60)


def test_finds_every_block() -> None:
    found = documents.blocks(_DOCUMENT)
    assert [(block.language, block.line) for block in found] == [
        *(("python", 5), ("yaml", 11), ("bash", 15), ("console", 19), ("bash", 28), ("python", 32))
    ]
    assert [block.not_run for block in found if block.not_run] == ["it would take all day"]
    assert found[1].kind is None


def test_the_projects_own_commands_are_not_run_again() -> None:
    (block,) = documents.blocks("```console\n$ make test\n1 passed\n```\n")
    assert block.kind is None


def test_runs_them_in_order_in_one_folder(tmp_path: Path) -> None:
    _run(_DOCUMENT, tmp_path)
    assert (tmp_path / "first.txt").read_text() == "first\n"


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("```python\nx = 1\nassert x == 2\n```\n", 'DOCUMENT.md", line 4'),
        ("```bash\nfalse\necho reached\n```\n", "DOCUMENT.md:3 (bash) failed"),
        ("```console\n$ false | cat\n```\n", "DOCUMENT.md:3 (console) failed"),
        ("```sh\necho $undefined\n```\n", "DOCUMENT.md:3 (sh) failed"),
    ],
)
def test_a_failing_block_is_told_with_its_line(tmp_path: Path, block: str, told: str) -> None:
    with pytest.raises(AssertionError) as failed:
        _run("\n" + block, tmp_path)
    assert told in str(failed.value)
    assert "reached" not in str(failed.value)


def test_a_block_without_an_end_is_an_error() -> None:
    with pytest.raises(ValueError, match="line 1 has no end"):
        documents.blocks("```python\nx = 1\n")
