"""A broken fleet of machines. The rules for causes were not tuned with it."""

from typing import Final

FILES: Final = {
    "pytest.ini": "[pytest]\nmarkers = cause: label\n",
    "src/fleet/__init__.py": "",
    "src/fleet/api.py": """
import logging

log = logging.getLogger(__name__)


class ApiError(RuntimeError):
    pass


class Client:
    def __init__(self, answers):
        self.answers = answers
        self.is_closed = True

    def _call(self, method, path):
        status, words = self.answers[path.split("/")[1]]
        if status >= 400:
            raise ApiError("%s %s -> HTTP %d %s" % (method, path, status, words))
        return {}

    def machine(self, number):
        return self._call("GET", f"/machines/{number}")

    def start(self, number):
        return self._call("POST", f"/machines/{number}/start")

    def key(self, name):
        return self._call("GET", f"/keys/{name}")

    def login(self, user):
        reply = {"user": user, "expires": 7}
        return reply["token"]

    def send(self, text):
        return len(text)

    async def ask(self, question):
        if self.is_closed:
            raise RuntimeError("session is closed")


def broadcast(client, texts):
    return client.send_all(texts)


def announce(client):
    client.send_all(["up"])


def notify(client, machine):
    log.info("%s is up", machine)
""",
    "src/fleet/config.py": '''
import configparser
import enum
import os
from datetime import datetime
from decimal import Decimal
from functools import lru_cache


class ConfigError(Exception):
    """Something in the configuration."""


class Colour(enum.Enum):
    RED = "red"


def required(name):
    value = os.environ.get(name)
    if value is None:
        raise ConfigError(f"{name} is not set; see the manual")
    return value


def base_url():
    return required("FLEET_URL") + "/v1"


def colour(word):
    return Colour(word)


def price(text):
    return Decimal(text)


def day(text):
    return datetime.strptime(text, "%Y-%m-%d")


@lru_cache
def defaults():
    return {"limit": 3, "mode": "fast"}


def section(text, name):
    parser = configparser.ConfigParser()
    parser.read_string(text)
    return parser[name]


def column(rows, name, path):
    if name not in rows[0]:
        raise ConfigError("column %s is missing in %s" % (name, path))
''',
    "src/fleet/store.py": """
import queue
import socket
import sqlite3
import struct
import zlib


class Store:
    def __init__(self, path):
        self.path = path
        self.is_open = False

    def write(self, data):
        assert self.is_open, "the store is not open"

    def append(self, data):
        self.write(data)


def listen():
    first = socket.create_server(("127.0.0.1", 0))
    with first:
        port = first.getsockname()[1]
        second = socket.socket()
        second.bind(("127.0.0.1", port))


def header(data):
    return struct.unpack(">IH", data)


def unpack(data):
    return zlib.decompress(data)


def locked(path):
    first = sqlite3.connect(path, isolation_level=None)
    first.execute("create table if not exists t (a)")
    first.execute("begin exclusive")
    second = sqlite3.connect(path, timeout=0.01)
    second.execute("insert into t values (1)")


def next_job(seconds):
    return queue.Queue().get(timeout=seconds)


def fields(line):
    parts = line.split(";")
    return parts[0], parts[3]
""",
    "src/fleet/shapes.py": """
import math


def area(radius):
    return 3 * radius ** 2


def slug(text):
    return text.replace(" ", "_")


def page(name):
    from jinja2 import Environment, StrictUndefined
    return Environment(undefined=StrictUndefined).from_string("{{ user.name }} {{ name }}").render(name=name)


def widget():
    from fleet.api import Widget
    return Widget()


def gadget():
    from fleet.api import Widget as Gadget
    return Gadget
""",
    "tests/conftest.py": """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import pytest
from fleet.api import Client


@pytest.fixture
def client():
    return Client({"machines": (503, "Service Unavailable"), "keys": (401, "Unauthorized")})


@pytest.fixture
def url():
    from fleet.config import base_url
    return base_url()


@pytest.fixture
def machine(client):
    return client.machine(99)
""",
    "tests/unit/test_api.py": """
import asyncio
from unittest import mock

import pytest
from fleet import api


class TestMachines:
    @pytest.mark.cause("503")
    @pytest.mark.parametrize("number", [1, 20, 300, 4000])
    def test_machine(self, client, number):
        assert client.machine(number)["id"] == number

    @pytest.mark.cause("503")
    def test_start(self, client):
        client.start(4)

    @pytest.mark.cause("503")
    def test_ready(self, machine):
        assert machine["ready"]

    @pytest.mark.cause("503")
    def test_ready_soon(self, machine, client):
        assert client


class TestKeys:
    @pytest.mark.cause("401")
    @pytest.mark.parametrize("name", ["deploy", "backup", "x509", "ci", "ops"])
    def test_key(self, client, name):
        assert client.key(name)

    @pytest.mark.cause("401")
    def test_no_key(self, client):
        with pytest.raises(KeyError):
            client.key("gone")


@pytest.mark.cause("token")
@pytest.mark.parametrize("user", ["ann", "ben", "cy"])
def test_login(client, user):
    assert client.login(user)


@pytest.mark.cause("token")
class TestSession:
    @pytest.fixture
    def session(self, client):
        return client.login("root")

    def test_session(self, session):
        assert session

    def test_logout(self, session):
        assert session is None


@pytest.mark.cause("send all")
@pytest.mark.parametrize("texts", [["a"], ["b", "c"], [], ["d"] * 5])
def test_broadcast(client, texts):
    assert api.broadcast(client, texts) == len(texts)


@pytest.mark.cause("send all")
def test_announce(client):
    api.announce(client)


@pytest.mark.cause("send all")
def test_send_all(client):
    assert client.send_all([]) == 0


@pytest.mark.cause("closed")
@pytest.mark.parametrize("question", ["a?", "b?", "c?"])
def test_ask(client, question):
    assert asyncio.run(client.ask(question))


@pytest.mark.cause("closed")
def test_ask_twice(client):
    async def both():
        async with asyncio.TaskGroup() as group:
            group.create_task(client.ask("x"))
            group.create_task(client.ask("y"))

    asyncio.run(both())


@pytest.mark.cause("notify")
@pytest.mark.parametrize("name", ["m1", "m2", "m3", "m4"])
def test_notify(name):
    client = mock.Mock()
    api.notify(client, name)
    client.send.assert_called_once_with(name)


@pytest.mark.cause("notify")
def test_notified():
    client = mock.Mock()
    api.notify(client, "m4")
    assert client.send.called
""",
    "tests/unit/test_config.py": """
import pytest
from fleet import config


@pytest.mark.cause("not set")
def test_url(url):
    assert url.startswith("http")


@pytest.mark.cause("not set")
@pytest.mark.parametrize("path", ["a", "b", "c"])
def test_paths(url, path):
    assert url


@pytest.mark.cause("not set")
def test_base():
    assert config.base_url()


@pytest.mark.cause("colour")
@pytest.mark.parametrize("word", ["purple", "light blue", "7", ""])
def test_colour(word):
    assert config.colour(word).value == word


@pytest.mark.cause("colour")
def test_colours():
    assert [config.colour(word) for word in ("red", "green")]


@pytest.mark.cause("decimal")
@pytest.mark.parametrize("text", ["1,50", "two", "3 EUR", "--"])
def test_price(text):
    assert config.price(text) > 0


@pytest.mark.cause("decimal")
def test_prices():
    assert sum(map(config.price, ["1.5", "$2"]))


@pytest.mark.cause("day")
@pytest.mark.parametrize("text", ["01.02.2026", "yesterday", "2026/01/02", "x" * 30])
def test_day(text):
    assert config.day(text).year == 2026


@pytest.mark.cause("day")
def test_days():
    days = [config.day(text) for text in ("2026-01-01", "Jan 2, 2026")]
    assert days


@pytest.mark.cause("defaults")
class TestDefaults:
    def test_limit(self):
        assert config.defaults()["limit"] == 5

    def test_mode(self):
        settings = config.defaults()
        assert settings["mode"] == "safe"

    def test_all(self):
        assert config.defaults() == {"limit": 5, "mode": "safe", "retries": 0}

    def test_has(self):
        found = config.defaults()
        assert "retries" in found


@pytest.mark.cause("section")
@pytest.mark.parametrize("name", ["users", "hosts", "disks"])
def test_section(name):
    assert config.section("[main]", name)


@pytest.mark.cause("section")
def test_sections():
    assert config.section("[a]\\n[b]", "c") is None


@pytest.mark.cause("column")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_column(tmp_path, number):
    config.column([{"a": 1}], "price", tmp_path / f"{number}.csv")


@pytest.mark.cause("column")
def test_columns(tmp_path):
    config.column([{}], "price", "/data/prices.csv")
""",
    "tests/integration/test_store.py": """
import pytest
from fleet import store
from fleet.store import Store


@pytest.mark.cause("not open")
@pytest.mark.parametrize("data", [b"", b"x", b"yy"])
def test_write(tmp_path, data):
    Store(tmp_path).write(data)


@pytest.mark.cause("not open")
def test_append():
    Store("/nowhere").append(b"y")


@pytest.mark.cause("not open")
def test_append_twice():
    kept = Store("a/b")
    for data in (b"1", b"2"):
        kept.append(data)


@pytest.mark.cause("in use")
@pytest.mark.parametrize("number", range(5))
def test_listen(number):
    store.listen()


@pytest.mark.cause("in use")
def test_listen_again():
    assert store.listen() is None


@pytest.mark.cause("header")
@pytest.mark.parametrize("data", [b"", b"12", b"1234567890", b"\\n"])
def test_header(data):
    assert store.header(data)


@pytest.mark.cause("header")
def test_header_parts():
    size, kind = store.header(b"abc")
    assert size > kind


@pytest.mark.cause("zlib")
@pytest.mark.parametrize("data", [b"plain", b"text", b"more text"])
def test_unpack(data):
    assert store.unpack(data)


@pytest.mark.cause("zlib")
def test_unpack_page():
    assert store.unpack(b"<html>") == "html"


@pytest.mark.cause("locked")
@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
def test_locked(tmp_path, name):
    store.locked(tmp_path / f"{name}.db")


@pytest.mark.cause("locked")
def test_locked_again(tmp_path):
    store.locked(tmp_path / "main.db")


@pytest.mark.cause("no job")
@pytest.mark.parametrize("seconds", [0.01, 0.02, 0.03])
def test_job(seconds):
    assert store.next_job(seconds)


@pytest.mark.cause("no job")
def test_jobs():
    jobs = [store.next_job(0.01) for _ in range(2)]
    assert len(jobs) == 2


@pytest.mark.cause("fields")
@pytest.mark.parametrize("line", ["", "a;b", "c;d;e", ";;"])
def test_fields(line):
    assert store.fields(line)[1] == "x"


@pytest.mark.cause("fields")
def test_all_fields():
    rows = [store.fields(line) for line in ("1;2;3;4", "5")]
    assert rows
""",
    "tests/unit/test_shapes.py": """
import pytest
from fleet import shapes
from fleet.shapes import area, slug


@pytest.mark.cause("area")
@pytest.mark.parametrize(("radius", "expected"), [(1, 3.14159), (2, 12.566), (10, 314.159)])
def test_area(radius, expected):
    assert area(radius) == pytest.approx(expected, rel=1e-3)


@pytest.mark.cause("area")
def test_area_of_ring():
    outer, inner = area(2), area(1)
    assert outer - inner == pytest.approx(9.42, abs=0.01)


@pytest.mark.cause("area")
def test_area_is_more():
    size = shapes.area(1)
    assert size > 3


@pytest.mark.cause("slug")
def test_slug():
    assert slug("Hello World") == "hello-world"


@pytest.mark.cause("slug")
@pytest.mark.parametrize("text", ["a b", "C", "d  e f"])
def test_slugs(text):
    made = slug(text)
    assert made == text.lower().replace(" ", "-"), f"{text!r} became {made!r}"


@pytest.mark.cause("slug")
class TestSlug:
    def test_ends(self):
        assert not slug("x y").endswith("_y")

    def test_same(self):
        one = slug("p q")
        assert one == slug("p-q")


@pytest.mark.cause("undefined")
@pytest.mark.parametrize("name", ["start", "end", "about"])
def test_page(name):
    assert name in shapes.page(name)


@pytest.mark.cause("undefined")
def test_pages():
    assert all(shapes.page(name) for name in ("x", "y"))


@pytest.mark.cause("widget")
@pytest.mark.parametrize("number", [1, 2])
def test_widget(number):
    assert shapes.widget()


@pytest.mark.cause("widget")
def test_gadget():
    assert shapes.gadget()


@pytest.mark.cause("widget")
def test_import():
    from fleet.api import Widget

    assert Widget
""",
}
