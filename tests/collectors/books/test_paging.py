"""Page after page: what is asked for, where the cursor goes, and what is said about it."""

from .shop import Shop
from tsuzuki.collectors.books.query_set import compute_query_set_hash, short_hash
from tsuzuki.sandbox.google_books import volumes

HASH = short_hash(compute_query_set_hash(["python"]))


def test_several_pages_are_asked_for_and_the_start_index_moves_on(shop: Shop) -> None:
    result = shop.collect(max_per_run=100)
    assert shop.asked() == [(0, 40), (40, 40), (80, 20)]
    assert shop.cursor() == (100, False)
    assert (result["stop_reason"], result["pages"], result["new_books"]) == ("max_per_run", 3, 100)
    assert len(shop.stored()) == 100


def test_the_log_says_what_operators_look_for(shop: Shop) -> None:
    shop.collect(max_per_run=80)
    assert shop.log == [
        "[google-books][novelties] Page 1: startIndex=0, returned=40, totalItems=150",
        "[google-books][novelties] Page 2: startIndex=40, returned=40, totalItems=150",
        "[google-books][novelties] Stopped: max_per_run reached (80/80), next startIndex=80",
    ]
    shop.source.catalogue = volumes(120)
    shop.collect()
    assert shop.log[-1] == (
        "[WARN][google-books][novelties] Exhausted: startIndex=120 >= totalItems=120 "
        f"(query_set_hash={HASH}...)"
    )
    shop.collect()
    assert shop.log == [f"[WARN][novelties] Skipped: exhausted (query_set_hash={HASH})"]
