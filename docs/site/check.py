#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at a site as it was made: every link within it leads to a file, those of our pages to a place in it, nothing is fetched
from elsewhere, and no marks of Markdown or of Doxygen are left in the text of our pages. (Of the places that Doxygen links to by
itself some are not there: summaries of nested classes, defaulted friends.)

  check.py FOLDER
"""
import html.parser
import pathlib
import re
import sys
import urllib.parse


class Seen(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.names, self.links, self.loads, self.words, self.code = set(), set(), set(), [], 0

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.names.update(v for k in ("id", "name") if (v := attributes.get(k)))
        if tag == "a" and attributes.get("href"):
            self.links.add(attributes["href"])
        for one in (attributes.get("src"), attributes.get("href") if tag == "link" else None):
            if one:
                self.loads.add(one)
        self.code += (tag in ("code", "tt", "pre", "script")) + ("fragment" in (attributes.get("class") or ""))
        if tag == "div" and self.code:
            self.code += "fragment" not in (attributes.get("class") or "")

    def handle_endtag(self, tag):
        if tag in ("code", "tt", "pre", "script") or (tag == "div" and self.code):
            self.code = max(0, self.code - 1)

    def handle_data(self, text):
        if not self.code:
            self.words.append(text)


def main():
    folder = pathlib.Path(sys.argv[1])
    pages = {}
    for file in folder.glob("*.html"):
        pages[file.name] = seen = Seen()
        seen.feed(file.read_text(encoding="utf-8"))
    wrong = []
    count = 0
    for name, seen in sorted(pages.items()):
        ours = re.match(r"(index|docs-.*|changelog|contributing)\.html", name)
        for link in sorted(seen.links):
            parts = urllib.parse.urlparse(link)
            if parts.scheme:
                continue
            count += 1
            to = urllib.parse.unquote(parts.path) or name
            anchor = urllib.parse.unquote(parts.fragment)
            if not (folder / to).exists():
                wrong.append(f"{name}: nothing is at {link}")
            elif ours and anchor and to in pages and anchor not in pages[to].names:
                wrong.append(f"{name}: no such place: {link}")
        wrong += [f"{name}: fetches {load}" for load in sorted(seen.loads) if re.match(r"(https?:)?//", load)]
        for word in seen.words if ours else ():
            if re.search(r"@ref\b|\]\(|class=\"markdown|^\s*\|[-| ]+\|", word):
                wrong.append(f"{name}: not understood: {' '.join(word.split())[:150]}")
    print("\n".join(wrong[:60]))
    if wrong or not count:
        sys.exit(f"site: {len(wrong)} faults")
    print(f"site: {len(pages)} pages, {count} links within it, all of which lead somewhere")


main()
