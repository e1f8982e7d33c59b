"""Jobs in Python: they report progress, return a result, and stop when they are told to."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tsuzuki import RunContext

SHOP = Path(__file__).with_name("var") / "shop.db"


def nightly(run: RunContext, *, days: int = 1) -> dict[str, int]:
    orders = query("SELECT customer, COUNT(*) FROM orders GROUP BY customer")
    for number, (customer, count) in enumerate(orders, 1):
        run.log(f"{customer}: {count} orders")
        run.progress(number, len(orders))
    return {"days": days, "customers": len(orders)}


def remind(run: RunContext, *, after_days: int) -> dict[str, int]:
    unpaid = query("SELECT id, customer FROM orders WHERE NOT paid")
    for order, customer in unpaid:
        run.log(f"order {order} of {customer} has not been paid for {after_days} days")
    return {"unpaid": len(unpaid)}


def recommend(run: RunContext, *, products: int = 120) -> dict[str, int]:
    for product in range(1, products + 1):
        run.wait(0.5)
        run.raise_if_cancelled()
        run.progress(product, products)
    return {"products": products}


def query(statement: str) -> list[tuple[str, int]]:
    with closing(sqlite3.connect(f"file:{SHOP}?mode=ro", uri=True)) as shop:
        return shop.execute(statement).fetchall()
