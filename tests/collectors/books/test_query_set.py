"""The hash of a query set is JavaScript's, bit for bit; the vectors were computed by Node."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsuzuki.collectors.books.query_set import (
    compute_query_set_hash,
    normalised,
    search_text,
    short_hash,
)

FOLDER = Path(__file__).parent / "vectors"
VECTORS = json.loads((FOLDER / "query-set-hash.json").read_text(encoding="utf-8"))
EACH_HASH = """
const crypto = require('crypto');
const sets = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const hash = queries => crypto.createHash('sha256').update(
  queries.map(q => q.trim().replace(/\\s+/g, ' ')).sort().join('\\n')).digest('hex');
console.log(JSON.stringify(sets.map(hash)));
"""


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_every_published_vector_holds(vector: dict[str, Any]) -> None:
    assert compute_query_set_hash(vector["queries"]) == vector["hash"]


def test_the_vectors_are_what_their_script_computes() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node here")
    done = subprocess.run(
        [node, FOLDER / "query-set-hash.mjs"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == VECTORS


@settings(max_examples=3)
@given(
    st.lists(
        st.lists(
            st.text(
                st.characters(max_codepoint=0x1FFFF)
                | st.sampled_from(" \ufeff\u0085\u2028\ud83d\ude00"),
                max_size=6,
            ),
            max_size=4,
        ),
        min_size=20,
        max_size=60,
    )
)
def test_any_set_has_the_hash_that_javascript_gives_it(sets: list[list[str]]) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node here")
    done = subprocess.run(
        [node, "-e", EACH_HASH], input=json.dumps(sets), capture_output=True, text=True, check=True
    )
    assert [compute_query_set_hash(queries) for queries in sets] == json.loads(done.stdout)


def test_the_hash_is_whole_in_the_database_and_short_in_the_log() -> None:
    whole = compute_query_set_hash(["python"])
    assert len(whole) == 64
    assert short_hash(whole) == whole[:16]


def test_the_search_joins_the_queries_and_does_not_depend_on_their_order() -> None:
    assert search_text(["  b  c ", "a"]) == "a OR b c"
    assert search_text(["a", "b c"]) == "a OR b c"
    assert normalised(["B", "a"]) == ["B", "a"]
