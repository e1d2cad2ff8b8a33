"""Locations and object names for property tests: random, and close to one another on purpose."""

from __future__ import annotations

from hypothesis import strategies as st

HOSTILE = [
    "with space",
    "per%25cent",
    "star*",
    "question?",
    "dollar$",
    "${aws:username}",
    "${*}",
    "plus+plus",
    "hash#",
    "single'quote",
    'double"quote',
    "') || true || ('",
    '"],"Resource":"*"',
    "ünïcødé-表",
    "comma,semi;colon:",
    "[brackets]{braces}",
    "`tick`~tilde^",
    "a=b&c=d",
]

_CHARACTERS = st.sampled_from([*"ab*?$+#%'\"{}[]:,;=&@!~^`| .-_", "é", "表", "\U0001f600"])
segments = st.one_of(
    st.sampled_from(["t", "a", "ab", "t1", "t10", *HOSTILE]),
    st.text(_CHARACTERS, min_size=1, max_size=6),
).filter(lambda segment: segment not in (".", "..") and "%2f" not in segment.lower())
paths = st.lists(segments, min_size=1, max_size=4).map("/".join)


@st.composite
def neighbours(draw: st.DrawFn, path: str) -> str:
    """An object's name near a directory: below it, beside it, above it, or anywhere."""
    other = draw(paths)
    characters = draw(st.text(_CHARACTERS, max_size=3))
    return draw(
        st.sampled_from(
            [
                f"{path}/{other}",
                f"{path}/{characters}x",
                f"{path}{characters}/{other}",
                f"{path}{characters}",
                path[:-1] + other,
                path.rpartition("/")[0] + "/" + other,
                path.upper() + "/x",
                f"{other}/{path}/x",
                path.replace("*", "anything").replace("?", "x") + "/x",
                path.replace("$", "") + "/x",
                other,
                "",
            ]
        )
    )
