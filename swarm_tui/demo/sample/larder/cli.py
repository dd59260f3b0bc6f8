"""The command line of larder: reads the words, changes the shelf, says what happened."""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import sys
from pathlib import Path

from larder import __version__
from larder.amounts import parse_amount, show_amount
from larder.dates import is_soon, parse_date
from larder.kitchen import missing, read_recipe, shopping_list
from larder.shelf import Item, Shelf, describe

SOON_DAYS = 7


def main() -> None:
    """Run the command that was asked for."""
    arguments = _parser().parse_args()
    shelf = Shelf(Path(os.environ.get("LARDER_FILE") or Path.home() / ".larder.json"))
    try:
        arguments.do(shelf, arguments)
    except (KeyError, ValueError, FileNotFoundError) as error:
        print(f"larder: {error.args[-1]}", file=sys.stderr)
        sys.exit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="larder", description="What is in the larder, and what should be.")
    parser.add_argument("--version", action="version", version=f"larder {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    add = commands.add_parser("add", help="put something on the shelf")
    add.add_argument("name")
    add.add_argument("amount", nargs="?", default="1", type=parse_amount, help="such as 6, 500g or 1.5l")
    add.add_argument("--best-before", type=parse_date, metavar="DATE")
    add.add_argument("--aisle", default="other")
    add.add_argument("--keep", type=parse_amount, metavar="AMOUNT", help="buy more when less than this is left")
    add.set_defaults(do=_add)

    listing = commands.add_parser("list", help="show what is on the shelf")
    listing.add_argument("--aisle")
    listing.set_defaults(do=_list)

    use = commands.add_parser("use", help="take something off the shelf")
    use.add_argument("name")
    use.add_argument("amount", nargs="?", default="1", type=parse_amount)
    use.set_defaults(do=_use)

    soon = commands.add_parser("soon", help="show what has to be eaten soon")
    soon.add_argument("--days", type=int, default=SOON_DAYS)
    soon.set_defaults(do=_soon)

    for name, words, do, text in (
        ("find", ("text",), _find, "search by name"),
        ("rename", ("name", "new_name"), _rename, "give something another name"),
        ("drop", ("name",), _drop, "forget something"),
        ("undo", (), _undo, "take back the last change"),
        ("shop", (), _shop, "show what to buy, aisle by aisle"),
        ("cook", ("recipe",), _cook, "take what a recipe needs off the shelf"),
        ("import", ("file",), _import, "add everything of a CSV file"),
        ("export", (), _export, "write the shelf as CSV"),
        ("share", ("folder",), _share, "copy the shelf to the family's folder"),
    ):
        command = commands.add_parser(name, help=text)
        for word in words:
            command.add_argument(word)
        command.set_defaults(do=do)
    return parser


def _add(shelf: Shelf, arguments: argparse.Namespace) -> None:
    item = Item(arguments.name, arguments.amount, arguments.aisle, arguments.best_before, arguments.keep)
    now = shelf.put(item)
    shelf.save()
    print(f"{describe(now)} in the larder")


def _list(shelf: Shelf, arguments: argparse.Namespace) -> None:
    chosen = [item for item in shelf.items.values() if arguments.aisle in (None, item.aisle)]
    if not chosen:
        print("the larder is empty")
    width = max((len(item.name) for item in chosen), default=0)
    for item in chosen:
        mark = "!" if item.best_before and is_soon(item.best_before, SOON_DAYS) else " "
        date = f"best before {item.best_before}" if item.best_before else ""
        print(f"{item.name:{width}} {mark} {show_amount(item.amount):>8}  {item.aisle:8} {date}".rstrip())


def _use(shelf: Shelf, arguments: argparse.Namespace) -> None:
    left = shelf.take(arguments.name, arguments.amount)
    shelf.save()
    print(f"{describe(left)} left")


def _soon(shelf: Shelf, arguments: argparse.Namespace) -> None:
    dated = [(item.best_before, item) for item in shelf.items.values() if item.best_before]
    eaten_soon = [(day, item) for day, item in dated if is_soon(day, arguments.days)]
    for day, item in sorted(eaten_soon, key=lambda pair: pair[0]):
        print(f"{day}  {describe(item)}")
    if not eaten_soon:
        print("nothing has to be eaten soon")


def _find(shelf: Shelf, arguments: argparse.Namespace) -> None:
    found = [item for item in shelf.items.values() if arguments.text.lower() in item.name.lower()]
    if not found:
        raise KeyError(f"nothing like {arguments.text} in the larder")
    for item in found:
        print(describe(item))


def _rename(shelf: Shelf, arguments: argparse.Namespace) -> None:
    shelf.rename(arguments.name, arguments.new_name)
    shelf.save()
    print(f"{arguments.name} is now {arguments.new_name}")


def _drop(shelf: Shelf, arguments: argparse.Namespace) -> None:
    shelf.drop(arguments.name)
    shelf.save()
    print(f"no {arguments.name} any more")


def _undo(shelf: Shelf, arguments: argparse.Namespace) -> None:
    print("taken back" if shelf.undo() else "there is nothing to take back")


def _shop(shelf: Shelf, arguments: argparse.Namespace) -> None:
    for aisle, wanted in shopping_list(shelf):
        print(f"{aisle}:")
        for item, amount in wanted:
            print(f"  [ ] {show_amount(amount)} {item.name}")


def _cook(shelf: Shelf, arguments: argparse.Namespace) -> None:
    needs = read_recipe(Path(arguments.recipe))
    lacking = missing(shelf, needs)
    for need in lacking:
        print(f"{show_amount(need.amount)} of {need.name} missing", file=sys.stderr)
    if lacking:
        sys.exit(1)
    for need in needs:
        print(f"{describe(shelf.take(need.name, need.amount))} left")
    shelf.save()


def _import(shelf: Shelf, arguments: argparse.Namespace) -> None:
    with open(arguments.file, newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        shelf.put(Item(row["name"], parse_amount(row["amount"]), row["aisle"], parse_date(row["best_before"])))
    shelf.save()
    print(f"{len(rows)} items imported")


def _export(shelf: Shelf, arguments: argparse.Namespace) -> None:
    print("name,amount,aisle,best_before")
    for item in shelf.items.values():
        date = item.best_before.isoformat() if item.best_before else ""
        print(f"{item.name},{show_amount(item.amount)},{item.aisle},{date}")


def _share(shelf: Shelf, arguments: argparse.Namespace) -> None:
    target = Path(arguments.folder) / "larder.json"
    shutil.copy(shelf.path, target)
    print(f"{len(shelf.items)} items shared")
