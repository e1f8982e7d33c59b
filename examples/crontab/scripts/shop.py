"""shop.py TASK: what most jobs of the shop do, on a small SQLite file in var."""

import csv
import json
import os
import sqlite3
import sys
from pathlib import Path

VAR = Path("var")
CUSTOMERS = "SELECT customer, COUNT(*), SUM(amount) FROM orders GROUP BY customer ORDER BY customer"


def open_shop() -> sqlite3.Connection:
    VAR.mkdir(exist_ok=True)
    shop = sqlite3.connect(VAR / "shop.db")
    shop.execute(
        "CREATE TABLE IF NOT EXISTS orders"
        " (id INTEGER PRIMARY KEY, customer TEXT, amount NUMERIC, paid INTEGER)"
    )
    return shop


def load_orders() -> None:
    with Path("data/orders.csv").open(encoding="utf-8") as file, open_shop() as shop:
        rows = [
            (row["id"], row["customer"], row["amount"], row["paid"]) for row in csv.DictReader(file)
        ]
        before = shop.total_changes
        shop.executemany("INSERT OR IGNORE INTO orders VALUES (?, ?, ?, ?)", rows)
        print(f"{len(rows)} orders in the export, {shop.total_changes - before} new")


def vacuum() -> None:
    shop = open_shop()
    shop.execute("VACUUM")
    print(f"{(VAR / 'shop.db').stat().st_size} bytes")


def invoice() -> None:
    order = json.loads(os.environ["TSUZUKI_EVENT"])
    write(f"invoices/{order['id']}.txt", f"{order['customer']} owes {order['amount']}\n")


def rates() -> None:
    write("rates.json", json.dumps({"EUR/USD": 1.09, "EUR/JPY": 163.2}))


def close_month() -> None:
    with open_shop() as shop:
        (total,) = shop.execute("SELECT COALESCE(SUM(amount), 0) FROM orders").fetchone()
    write("closing.txt", f"total {total}\n")


def statements() -> None:
    with open_shop() as shop:
        for customer, count, total in shop.execute(CUSTOMERS):
            write(f"statements/{customer}.txt", f"{count} orders, {total} in total\n")


def newsletter() -> None:
    write("newsletter.txt", "Dear customers, …\n")


def train() -> None:
    for epoch in range(1, 6):
        print(f"epoch {epoch}: loss {1 / epoch:.3f}", flush=True)


def certificates() -> None:
    for name, days in (("shop.example", 61), ("mail.example", 9)):
        print(f"{name} expires in {days} days")
        if days < 14:
            raise RuntimeError(f"the certificate of {name} expires in {days} days")


def write(name: str, text: str) -> None:
    path = VAR / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path}")


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")]()
