# SPDX-License-Identifier: Apache-2.0
"""What a decoder did for a request, step by step."""

from __future__ import annotations

import html
import json
import os
import pathlib
from typing import Any


class Trace:
    """What a decoder did for one request (Request.trace): its beam, candidate by candidate; docs/viewer.md.

    A notebook shows its page where it is the value of a cell. `page` is the same as text, `write(file)` writes it, and `events` are
    the lines of JSON that it is made of.
    """

    def __init__(self, lines: bytes, page: bytes):
        self._lines, self._page = lines, page

    @property
    def lines(self) -> str:
        """The events as text, a line of JSON for each."""
        return self._lines.decode(errors="replace")

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events: docs/viewer.md describes them."""
        return [json.loads(line) for line in self.lines.splitlines()]

    @property
    def page(self) -> str:
        """A page for a browser: HTML, complete in itself."""
        return self._page.decode(errors="replace")

    def write(self, file: str | os.PathLike[str]) -> None:
        """Writes the page."""
        pathlib.Path(file).write_bytes(self._page)

    def __repr__(self) -> str:
        return f"<Trace of {len(self._lines.splitlines())} events>"

    def _repr_html_(self) -> str:
        """The page, in a frame of its own."""
        return (f'<iframe srcdoc="{html.escape(self.page)}" sandbox="allow-scripts" '
                'style="width: 100%; height: 640px; border: 1px solid #ccc"></iframe>')
