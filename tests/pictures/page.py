"""HTML and SVG as a browser reads them: elements with their attributes and texts."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "input", "br", "hr", "img", "link"}


class Page(HTMLParser):
    """Every element: `(tag, attributes, texts inside)`."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str], list[str]]] = []
        self._open: list[tuple[str, dict[str, str], list[str]]] = []
        self.feed(markup)
        self.close()
        assert not self._open, f"never closed: {self._open[-1][0]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = (tag, {name: value or "" for name, value in attrs}, [])
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}, []))

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1][0] == tag, f"</{tag}> closes nothing"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element[2].append(data)

    def all(self, tag: str, **wanted: str) -> list[tuple[dict[str, str], str]]:
        """Attributes and text of the elements with that tag and, in each attribute, that word."""
        return [
            (attributes, "".join(texts))
            for name, attributes, texts in self.elements
            if name == tag
            and all(
                value in attributes.get(key.rstrip("_").replace("_", "-"), "").split() for key, value in wanted.items()
            )
        ]
