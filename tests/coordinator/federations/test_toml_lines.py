"""The line of every key of a TOML text, whatever the text does to hide it."""

import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.federations.toml_lines import Path, line_of, lines_of


def paths(value: object, path: Path = ()) -> Iterator[Path]:
    """Every key, table and item that tomllib found."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, item in inner:
        yield from paths(item, (*path, part))


def located(text: str) -> dict[Path, int]:
    """The lines of a text, which must be those of exactly what tomllib finds in it."""
    lines = dict(lines_of(text))
    assert set(lines) == set(paths(tomllib.loads(text)))
    return lines


TRICKY = '''\
# [comment]
name = "a # [b]" # = "
[a."b.c".'d']
x = 1 # y = 2
y.z = """
[not.a.table]
q = 1
\\""" ""\\" """""
w = \'\'\'
it's "fine"
k = 1\'\'\'\'\'
items = [ 1, # ]
  "]", [ {p = 1, q.r = "}"} ],
  [], {},
]
when = 1979-05-27 07:32:00
[ t ]
   " spaced key "   =   true
"caf\\u00e9" = 1
[[many]]
n = 1
[many.sub]
d = 1
[[many]]
[[many.deep]]
k = 0
[[many.deep]]
k = 1
[last]
'''


def test_nothing_that_looks_like_a_key_fools_it() -> None:
    lines = located(TRICKY)
    assert lines[("name",)] == 2
    assert lines[("a",)] == lines[("a", "b.c", "d")] == 3
    assert lines[("a", "b.c", "d", "y", "z")] == 5
    assert lines[("a", "b.c", "d", "w")] == 9
    assert lines[("a", "b.c", "d", "items")] == 12
    assert lines[("a", "b.c", "d", "items", 2, 0, "q", "r")] == 13
    assert lines[("a", "b.c", "d", "items", 4)] == 14
    assert lines[("t", " spaced key ")] == 18
    assert lines[("t", "café")] == 19
    assert lines[("many",)] == lines[("many", 0)] == 20
    assert lines[("many", 0, "sub", "d")] == 23
    assert lines[("many", 1)] == 24
    assert lines[("many", 1, "deep", 0, "k")] == 26
    assert lines[("many", 1, "deep", 1, "k")] == 28
    assert lines[("last",)] == 29


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_windows_line_ends_count_once(ends: str) -> None:
    assert located(ends.join(["", "[a]", 'x = """', '"""', "y = 1"]))[("a", "y")] == 5


def test_a_key_that_is_not_there_is_at_its_table() -> None:
    lines = lines_of("[a]\nx = 1\n[a.b]\n")
    assert line_of(("a", "x"), lines) == 2
    assert line_of(("a", "z"), lines) == 1
    assert line_of(("a", "b", "z", 3), lines) == 3
    assert line_of(("c", "z"), lines) is None
    assert line_of((), lines) is None


@given(st.text(alphabet="ab=[]{}\"'#\\,.\n 1", max_size=60))
def test_any_text_at_all_is_survived(text: str) -> None:
    found = lines_of(text)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert set(found) == set(paths(data))


QUOTES = st.sampled_from(['"', "'", '"""', "'''"])
# What stands between quotes: everything that means something elsewhere, and quotes only where they may be.
INSIDE = st.text(alphabet="abc [=]#{},.", max_size=12)


@st.composite
def texts(draw: st.DrawFn) -> str:
    quote, inside = draw(QUOTES), draw(INSIDE)
    if len(quote) == 3:
        lines = [inside, *draw(st.lists(INSIDE, max_size=2))]
        inside = "\n".join(lines) + draw(st.sampled_from(["", quote[0], quote[0] * 2]))
    return quote + inside + quote


SCALARS = st.one_of(st.sampled_from(["1", "-0.5e3", "true", "1979-05-27 07:32:00", "0xff", "inf"]), texts())
KEYS = st.one_of(st.sampled_from(["a", "b-1", "_c", "7"]), INSIDE.map(lambda text: f'"{text}"'))
GAPS = st.sampled_from(["", " ", "\n", "  # ] } =\n", "\n\n"])


def arrays(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    item = st.tuples(GAPS, items, GAPS).map("".join)
    return st.lists(item, max_size=3).map(lambda found: "[" + ",".join(found) + "]")


@st.composite
def inline_tables(draw: st.DrawFn, items: st.SearchStrategy[str]) -> str:
    keys = draw(st.lists(KEYS, max_size=3, unique=True))
    return "{" + ", ".join(f"{key} = {draw(items)}" for key in keys) + "}"


VALUES = st.recursive(SCALARS, lambda inner: arrays(inner) | inline_tables(inner), max_leaves=4)
STATEMENTS = st.one_of(
    st.tuples(st.lists(KEYS, min_size=1, max_size=2), VALUES).map(lambda pair: f"{'.'.join(pair[0])} = {pair[1]}"),
    st.lists(KEYS, min_size=1, max_size=2).map(lambda key: f"[{' . '.join(key)}]"),
    st.lists(KEYS, min_size=1, max_size=2).map(lambda key: f"[[{'.'.join(key)}]]"),
    INSIDE.map(lambda text: f"# {text}"),
    st.just(""),
)


@given(st.lists(STATEMENTS, max_size=8))
def test_random_documents_are_located_as_they_are_read(statements: list[str]) -> None:
    kept: list[str] = []
    for statement in statements:  # what would make the document invalid, such as a key twice, is left out
        try:
            tomllib.loads("\n".join([*kept, statement]))
        except tomllib.TOMLDecodeError:
            continue
        kept.append(statement)
    lines = located("\n".join(kept))
    seen: set[Path] = set()
    first = 1
    for count, statement in enumerate(kept, start=1):  # slow, and obvious: a path is in the statement that brought it
        last = first + statement.count("\n")
        now = set(paths(tomllib.loads("\n".join(kept[:count]))))
        assert all(first <= lines[path] <= last for path in now - seen)
        seen, first = now, last + 1
