#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Doxygen's filter of Markdown: the page as GitHub shows it becomes one whose links Doxygen can follow, and checks.

  page.py FILE.md

Each heading gets the name that GitHub would give it, behind the name of its file; links to pages, headings and headers become
references (one that leads nowhere is a warning of Doxygen's, so an error); what else of the repository is linked is named only,
as a site has no sources of examples. A link to what is not there is an error here.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def name_of(file):
    """The name of a page: that of its file, of README.md below examples/ that of its folder too."""
    return re.sub(r"\W+", "-", str(file.relative_to(ROOT).with_suffix(""))).lower()


def slug(heading):
    """As GitHub makes it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def plain(text):
    """In one line, and without code: in a reference Doxygen would show the marks."""
    return " ".join(text.split()).replace("`", "").replace('"', "'")


def is_page(file):
    return file.suffix == ".md" and (file.parent in (ROOT, ROOT / "docs", ROOT / "docs" / "benchmarks"))


# A block of code, a link or an image (whose text may hold code), code in a line: whatever begins first.
TOKEN = re.compile(
    r"^ *(?P<fence>`{3,}).*?^ *(?P=fence) *$"
    r"|(?P<link>(?P<mark>!?)\[(?P<text>(?:[^\]`\[]|`[^`]*`)*)\]\((?P<target>[^)\s]+)\))"
    r"|`[^`\n]+`"
    r"|(?P<asked>(?<=[ (])#[a-z])",
    re.MULTILINE | re.DOTALL,
)


class Page:
    def __init__(self, file):
        self.file = file
        self.wrong = []

    def link(self, match):
        mark, text, target = match["mark"], match["text"], match["target"]
        if re.match(r"[a-z]+:", target):
            return f"[{' '.join(text.split())}]({target})"
        path, _, anchor = target.partition("#")
        file = (self.file.parent / path).resolve() if path else self.file
        if not file.exists():
            self.wrong.append(f"{self.file.relative_to(ROOT)}: nothing is at {target}")
            return text
        if mark == "!":
            return f"![{plain(text)}]({file.name})"
        if is_page(file):
            text = plain(text)
            return f"[{text}](@ref {name_of(file)}{'-' + anchor if anchor else ''})"
        if file.suffix in (".hpp", ".cuh", ".h") and re.match(r"(include|kernels)/", str(file.relative_to(ROOT))):
            return f"[{plain(text)}](@ref {re.sub('^(include|kernels)/', '', str(file.relative_to(ROOT)))})"
        return text

    def text(self):
        lines, fence, seen = [], None, {}
        for line in self.file.read_text(encoding="utf-8").splitlines():
            mark = re.match(r"\s*(`{3,})", line)
            if mark:
                fence = None if fence == mark[1] else fence or mark[1]
            elif not fence:
                heading = re.match(r"(#{1,6}) (.*)$", line)
                if heading:
                    name = slug(heading[2])
                    count = seen.get(name, 0)
                    seen[name] = count + 1
                    name += f"-{count}" if count else ""
                    anchor = name_of(self.file) + ("" if heading[1] == "#" else f"-{name}")
                    line = f"{heading[1]} {heading[2]} {{#{anchor}}}"
            lines.append(line)
        return TOKEN.sub(self.token, "\n".join(lines) + "\n")

    def token(self, match):
        if match["link"]:
            return self.link(match)
        if match["asked"]:  # Doxygen would look for a name
            return match["asked"].replace("#", "\\#")
        return match[0] if match["fence"] else match[0].replace("::cuda", ":\u2060:cuda").replace("#eos", "#\u2060eos")


page = Page(pathlib.Path(sys.argv[1]).resolve())
sys.stdout.write(page.text())
if page.wrong:
    sys.exit("\n".join(page.wrong))
