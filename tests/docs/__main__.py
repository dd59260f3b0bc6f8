"""Regenerate the reference pages of the folder `docs`: `python -m tests.docs`."""

from tests.docs import DOCS, pages


def main() -> None:
    texts = pages()
    for path in DOCS.glob("schemas/*.json"):
        if path.relative_to(DOCS).as_posix() not in texts:
            path.unlink()
    for name, text in texts.items():
        path = DOCS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
