"""Regenerate the folder `docs` and the page of keys: `python -m tests.docs`."""

from tests.docs import DOCS, pages
from tests.room.keys_page import keys_page


def main() -> None:
    texts = pages()
    for path in sorted(DOCS.rglob("*"), reverse=True):
        if path.is_file() and path.suffix in (".md", ".json") and path.relative_to(DOCS).as_posix() not in texts:
            path.unlink()
    for name, text in texts.items():
        path = DOCS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)
    (DOCS.parent / "tutorial" / "keys.md").write_text(keys_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
