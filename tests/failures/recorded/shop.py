"""A broken shop. The rules for causes were tuned with it. Each test names its cause in a marker."""

from typing import Final

FILES: Final = {
    "pytest.ini": "[pytest]\nmarkers = cause: label\n    slow: slow\n",
    "shop/__init__.py": "",
    "shop/prices.py": """
import json

class ServiceError(Exception):
    pass

def total(prices):
    return round(sum(prices)) + 1

def average(prices):
    return sum(prices) / len([price for price in prices if price > 1000])

def ask(server, item):
    raise TimeoutError(f"no answer for {item} within {len(item)} s")

def read(text):
    return json.loads(text)

def fetch(server, item):
    try:
        return ask(server, item)
    except TimeoutError as error:
        raise ServiceError("request failed") from error

def parse(text):
    try:
        return read(text)
    except ValueError as error:
        raise ServiceError("request failed") from error
""",
    "shop/users.py": """
USERS = {}

class UserNotFound(Exception):
    def __init__(self, name):
        super().__init__(f"user {name} not found")
        self.name = name

class Cart:
    owner = None

    def label(self):
        return self.owner.name.upper()

def find(name):
    return USERS[name]

def load(name):
    if name not in USERS:
        raise UserNotFound(name)

def profile(name):
    return load(name)

def describe(cart):
    return f"cart of {cart.label()}"
""",
    "shop/base.py": """
import contextlib
import socket
import sqlite3

class TransactionError(Exception):
    pass

def connect(port):
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    return socket.create_connection(("127.0.0.1", closed), timeout=5)

def open_base():
    base = sqlite3.connect(":memory:")
    base.execute("create table users (email text unique)")
    return base

def query(base, number):
    return base.execute("select * from orders where id = ?", (number,)).fetchall()

def insert(base, number):
    base.execute("insert into orders values (?)", (number,))

def register(base, email):
    base.execute("insert into users values (?)", (email,))
    base.execute("insert into users values (?)", (email,))

@contextlib.contextmanager
def transaction():
    try:
        yield
    except Exception:
        raise TransactionError("rolled back")

def stock_of(item):
    shelves = [[1, 2], [3]]
    return shelves[len(item)]

def move(item):
    with transaction():
        return stock_of(item)

def name_of(code):
    return code.title() + 7

def rename(code):
    with transaction():
        return name_of(code)
""",
    "shop/jobs.py": """
import asyncio
import functools
import subprocess
import sys
import warnings

class RetryError(Exception):
    pass

def retried(function):
    @functools.wraps(function)
    def wrapper(*args):
        last = None
        for attempt in range(2):
            try:
                return function(*args)
            except Exception as error:
                last = error
        raise RetryError(f"gave up after {attempt + 1} attempts") from last
    return wrapper

@retried
def store(size):
    raise OSError(28, "No space left on device", f"/var/data/{size}.bin")

@retried
def checksum(text):
    return int(text, 16)

async def poll(seconds):
    await asyncio.wait_for(asyncio.sleep(5), seconds)

def convert(code):
    subprocess.run([sys.executable, "-c", f"raise SystemExit({code})"], check=True)

def up(depth):
    return down(depth + 1)

def down(depth):
    return up(depth + 1)

def old_style(value):
    warnings.warn("old_style() is deprecated, use new_style()", DeprecationWarning)

async def take(item):
    raise LookupError(f"{item} is out of stock")

async def ship(item):
    raise ConnectionResetError(104, "Connection reset by peer")

async def all_of(work):
    async with asyncio.TaskGroup() as group:
        group.create_task(work)
""",
    "shop/mail.py": """
import re
from dataclasses import dataclass

import pydantic

@dataclass
class Order:
    number: int
    street: str
    country: str

class Account(pydantic.BaseModel):
    email: str
    limit: int

def send_mail(to, subject, body):
    return True

def greet(name):
    return send_mail(name, "hello")

def remind(name):
    return send_mail(name, "reminder")

def account(data):
    return Account(**data)

def order(number):
    return Order(number, "street")

def search(text, pattern):
    return re.search("(" + pattern, text)

def upload(name):
    import boto9
    return boto9.client(name)

def download(name):
    from boto9 import client
    return client(name)

def decode(data):
    return data.decode("utf-8")

def settings(folder):
    with open(folder / "settings.json") as file:
        return file.read()

def check_name(name):
    return name

def flags(text):
    return text.split()

class Answer:
    def __init__(self, status):
        self.status_code = status

class Client:
    def get(self, path):
        return Answer(500 if path.startswith("/orders") else 404)
""",
    "conftest.py": """
import pytest
from shop import base, mail

@pytest.fixture
def server():
    return base.connect(5432)

@pytest.fixture
def cart_of(server):
    return server

@pytest.fixture
def db():
    return base.open_base()

@pytest.fixture
def client():
    return mail.Client()
""",
    "tests/helpers.py": """
def check_total(value, expected):
    assert value == expected

def assert_ok(answer):
    assert answer.status_code == 200
""",
    "tests/test_prices.py": """
import pytest
from helpers import check_total
from shop import prices
from shop.prices import total

@pytest.mark.cause("total")
def test_direct():
    assert prices.total([1, 2]) == 3

@pytest.mark.cause("total")
def test_by_variable():
    result = prices.total([5, 5])
    assert result == 10

@pytest.mark.cause("total")
def test_negative():
    values = [-1, -2]
    got = total(values)
    assert got < 0 and got == -3

@pytest.mark.cause("total")
@pytest.mark.parametrize("values", [[1], [2, 2], [10, 20], [7] * 9])
def test_helper(values):
    check_total(total(values), sum(values))

class TestAverage:
    @pytest.mark.cause("average")
    @pytest.mark.parametrize("values", [[1], [2, 3], [4, 5, 6]])
    def test_average(self, values):
        assert prices.average(values) == 1

    @pytest.mark.cause("average")
    def test_average_of_many(self):
        numbers = list(range(50))
        mean = prices.average(numbers)
        assert mean == 25

    @pytest.mark.cause("average")
    def test_rounded(self):
        assert round(prices.average([1.5, 1.5]), 1) == 1.5

@pytest.mark.cause("price timeout")
@pytest.mark.parametrize("item", ["pen", "paper", "ink", "stapler", "A4"])
def test_fetch(item):
    prices.fetch("a", item)

@pytest.mark.cause("price timeout")
def test_fetch_again():
    assert prices.fetch("b", "desk") == 4

@pytest.mark.cause("price json")
@pytest.mark.parametrize("text", ["", "price", "<html>", "null null"[5:-1], "nope"])
def test_parse(text):
    assert prices.parse(text) == {}

@pytest.mark.cause("price json")
def test_parse_page():
    page = prices.parse("Service unavailable")
    assert page
""",
    "tests/test_totals.py": """
import pytest
from helpers import check_total
from shop.prices import total, parse, fetch

@pytest.mark.cause("total")
def test_empty():
    assert total([]) == 0, f"{total([])} for nothing" if False else ""

@pytest.mark.cause("total")
def test_sum_is_small():
    cart = [1, 1, 1]
    assert total(cart) < 4

@pytest.mark.cause("price timeout")
def test_slow():
    with pytest.raises(KeyError):
        fetch("x", "chair")

@pytest.mark.cause("price json")
def test_garbage():
    parse("{]"[2:] or "x")
""",
    "tests/test_users.py": """
import pytest
from shop import users

@pytest.mark.cause("users key")
@pytest.mark.parametrize("name", ["alice", "bob", "carol-7", "dave smith", "erin@example.org"])
def test_find(name):
    users.find(name)

@pytest.mark.cause("users key")
def test_find_two():
    assert users.find("erin") != users.find("frank")

@pytest.mark.cause("user missing")
@pytest.mark.parametrize("name", ["alice", "bob", "carol", "dave", "user42"])
def test_load(name):
    users.load(name)

@pytest.mark.cause("user missing")
def test_profile():
    assert users.profile("zoe") is not None

@pytest.mark.cause("user missing")
def test_profile_of_guest():
    page = users.profile("guest")
    assert "guest" in page

@pytest.mark.cause("no owner")
def test_label():
    assert users.Cart().label() == "ANN"

@pytest.mark.cause("no owner")
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_describe(number):
    assert users.describe(users.Cart())
""",
    "tests/test_more_users.py": """
import pytest
from shop import users, mail

@pytest.mark.cause("no owner")
def test_again():
    carts = [users.Cart() for _ in range(3)]
    labels = [cart.label() for cart in carts]
    assert labels

@pytest.mark.cause("users key")
def test_lookup(monkeypatch):
    monkeypatch.setenv("LANG", "C")
    found = users.find("gus")
    assert found

@pytest.mark.cause("mail arguments")
@pytest.mark.parametrize("name", ["ann", "ben", "cleo", "dora"])
def test_greet(name):
    assert mail.greet(name)

@pytest.mark.cause("mail arguments")
def test_remind():
    mail.remind("cat")

@pytest.mark.cause("mail arguments")
def test_send():
    assert mail.send_mail("dan", "x")

@pytest.mark.cause("mail arguments")
def test_send_later():
    sent = mail.send_mail("eve", subject="later")
    assert sent

@pytest.mark.cause("no browser")
def test_page(browser):
    assert browser

class TestPages:
    @pytest.mark.cause("no browser")
    @pytest.mark.parametrize("page", ["a", "b", "c", "d", "e"])
    def test_page(self, browser, page):
        assert page

    @pytest.mark.cause("no browser")
    def test_click(self, db, browser):
        assert db
""",
    "tests/test_base.py": """
import pytest
from shop import base

@pytest.mark.cause("base refused")
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_ping(server, number):
    assert server

@pytest.mark.cause("base refused")
def test_cart(cart_of):
    assert cart_of

@pytest.mark.cause("base refused")
@pytest.mark.slow
def test_direct():
    base.connect(80).close()

@pytest.mark.cause("no table")
@pytest.mark.parametrize("number", [1, 22, 333, 4444])
def test_query(db, number):
    assert base.query(db, number) == []

@pytest.mark.cause("no table")
def test_insert(db):
    base.insert(db, 4)

@pytest.mark.cause("no table")
def test_raw(db):
    db.execute("delete from orders")

@pytest.mark.cause("twice")
@pytest.mark.parametrize("email", ["a@example.org", "b@example.com", "c.d@example.net"])
def test_register(db, email):
    base.register(db, email)

@pytest.mark.cause("twice")
def test_register_all(db):
    for number in range(3):
        base.register(db, f"user{number}@example.net")

@pytest.mark.cause("stock index")
@pytest.mark.parametrize("item", ["pen", "paper", "ink well", "chairs"])
def test_move(item):
    base.move(item)

@pytest.mark.cause("stock index")
def test_stock():
    assert base.stock_of("desk") == 1

@pytest.mark.cause("code name")
@pytest.mark.parametrize("code", ["x1", "y2", "z3", "ab"])
def test_rename(code):
    assert base.rename(code) == code

@pytest.mark.cause("code name")
def test_name():
    assert base.name_of("pen")
""",
    "tests/test_jobs.py": """
import asyncio
import unittest

import pytest
from shop import jobs, mail

@pytest.mark.cause("disk full")
@pytest.mark.parametrize("size", [1, 20, 300, 4000])
def test_store(size):
    jobs.store(size)

@pytest.mark.cause("disk full")
def test_store_big():
    assert jobs.store(10 ** 9)

@pytest.mark.cause("checksum")
@pytest.mark.parametrize("text", ["xyz", "nope", "", "0y1"])
def test_checksum(text):
    assert jobs.checksum(text) == 1

@pytest.mark.cause("checksum")
def test_checksum_of_word():
    value = jobs.checksum("quux")
    assert value

@pytest.mark.cause("poll")
@pytest.mark.parametrize("seconds", [0.01, 0.02, 0.03, 0.04])
def test_poll(seconds):
    asyncio.run(jobs.poll(seconds))

@pytest.mark.cause("poll")
def test_poll_twice():
    async def both():
        await asyncio.gather(jobs.poll(0.01), jobs.poll(0.05))
    asyncio.run(both())

@pytest.mark.cause("convert")
@pytest.mark.parametrize("code", [1, 2, 5, 127])
def test_convert(code):
    jobs.convert(code)

@pytest.mark.cause("convert")
def test_convert_all():
    for code in (3, 4):
        jobs.convert(code)

@pytest.mark.cause("recursion")
@pytest.mark.parametrize("depth", [0, 1, 5, 77])
def test_recursion(depth):
    jobs.up(depth)

@pytest.mark.cause("recursion")
def test_down():
    assert jobs.down(3) == 0

@pytest.mark.cause("deprecated")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1, "x"])
def test_old(value):
    assert jobs.old_style(value) is None

@pytest.mark.cause("deprecated")
@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_older():
    jobs.old_style(None)

@pytest.mark.cause("out of stock")
@pytest.mark.parametrize("item", ["pen", "ink", "desk lamp", "cup"])
def test_take(item):
    asyncio.run(jobs.all_of(jobs.take(item)))

@pytest.mark.cause("out of stock")
def test_take_alone():
    asyncio.run(jobs.take("desk"))

@pytest.mark.cause("reset")
@pytest.mark.parametrize("item", ["pen", "ink", "desk lamp", "cup"])
def test_ship(item):
    asyncio.run(jobs.all_of(jobs.ship(item)))

@pytest.mark.cause("reset")
def test_ship_alone():
    asyncio.run(jobs.ship("desk"))

@pytest.mark.cause("flags")
class TestFlags(unittest.TestCase):
    def test_one(self):
        self.assertEqual(mail.flags("a,b"), ["a", "b"])

    def test_none(self):
        self.assertEqual(mail.flags(""), [""])

    def test_in(self):
        found = mail.flags("x,y")
        self.assertIn("x", found)

    def test_several(self):
        for text in ("a,b", "c,d,e"):
            with self.subTest(text=text):
                self.assertEqual(len(mail.flags(text)), 2)

    def test_length(self):
        parts = mail.flags("1,2,3")
        self.assertEqual(len(parts), 3, "all flags are parted")
""",
    "tests/test_mail.py": """
import pytest
from helpers import assert_ok
from shop import mail

@pytest.mark.cause("email missing")
@pytest.mark.parametrize("limit", [1, 2, 30, 44])
def test_account(limit):
    assert mail.account({"limit": limit}).limit == limit

@pytest.mark.cause("email missing")
def test_account_alone():
    mail.account({"limit": 99})

@pytest.mark.cause("limit word")
@pytest.mark.parametrize("limit", ["many", "few", "12x", "1.5.2"])
def test_limit(limit):
    mail.account({"email": "a@example.org", "limit": limit})

@pytest.mark.cause("limit word")
def test_limit_of_many():
    data = {"email": "b@example.org", "limit": "none at all"}
    assert mail.account(data)

@pytest.mark.cause("no country")
@pytest.mark.parametrize("number", [1, 22, 333])
def test_order(number):
    assert mail.order(number).number == number

@pytest.mark.cause("no country")
def test_order_again():
    mail.Order(7, "street")

@pytest.mark.cause("pattern")
@pytest.mark.parametrize("pattern", ["a", "b+", "[cd]", "e|f"])
def test_search(pattern):
    assert mail.search("abc", pattern)

@pytest.mark.cause("pattern")
def test_search_long():
    assert mail.search("x" * 100, "x{3}") is None

@pytest.mark.cause("boto")
@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
def test_upload(name):
    mail.upload(name)

@pytest.mark.cause("boto")
def test_download():
    assert mail.download("c")

@pytest.mark.cause("boto")
def test_import():
    import boto9
    assert boto9

@pytest.mark.cause("bytes")
@pytest.mark.parametrize("data", [b"\\xff", b"abc\\xfe", b"\\x80\\x81"])
def test_decode(data):
    assert mail.decode(data)

@pytest.mark.cause("bytes")
def test_decode_page():
    page = mail.decode(b"caf\\xe9 au lait")
    assert page

@pytest.mark.cause("settings")
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_settings(tmp_path, number):
    assert mail.settings(tmp_path)

@pytest.mark.cause("settings")
def test_settings_below(tmp_path):
    mail.settings(tmp_path / "below")

@pytest.mark.cause("names")
@pytest.mark.parametrize("name", ["", " ", "a" * 500, "x/y"])
def test_refused(name):
    with pytest.raises(ValueError):
        mail.check_name(name)

@pytest.mark.cause("names")
def test_refused_number():
    with pytest.raises(TypeError, match="name"):
        mail.check_name(7)

@pytest.mark.cause("orders 500")
@pytest.mark.parametrize("number", [1, 2])
def test_order_page(client, number):
    assert client.get(f"/orders/{number}").status_code == 200

@pytest.mark.cause("orders 500")
def test_orders(client):
    answer = client.get("/orders")
    assert answer.status_code == 200

@pytest.mark.cause("orders 500")
def test_orders_helped(client):
    assert_ok(client.get("/orders?page=2"))

@pytest.mark.cause("users 404")
def test_users(client):
    response = client.get("/users/7")
    assert response.status_code == 200

@pytest.mark.cause("users 404")
@pytest.mark.parametrize("number", [3, 4])
def test_user_page(client, number):
    assert client.get("/users").status_code == 200

@pytest.mark.cause("users 404")
def test_users_helped(client):
    answer = client.get("/users/9")
    assert_ok(answer)
""",
    "tests/test_crash.py": """
import os
import pytest

@pytest.mark.cause("crash")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_crash(number):
    if os.environ.get("PYTEST_XDIST_WORKER"):
        os._exit(9)
    pytest.skip("needs a worker")
""",
}
