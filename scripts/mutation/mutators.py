# SPDX-License-Identifier: Apache-2.0
"""Finds the mutants of headers (the single changes that scripts/mutate tries) in Clang's syntax tree."""
import dataclasses
import glob
import re
import sys

CLANG = "19"
sys.path.append("/usr/lib/python3/dist-packages")  # Debian's location, for any python3
try:
    from clang import cindex
    from clang.cindex import CursorKind, TypeKind
except ImportError:
    cindex = None


def missing():
    """The reason why Clang cannot be used here; None if it can."""
    if cindex is None:
        return f"Clang's Python bindings are missing (Debian: python3-clang-{CLANG})"
    for library in glob.glob(f"/usr/lib/llvm-{CLANG}/lib/libclang-{CLANG}.so.1") + glob.glob(f"/usr/lib/*/libclang-{CLANG}.so.1"):
        cindex.Config.set_library_file(library)
        return None
    return f"libclang {CLANG} was not found (Debian: python3-clang-{CLANG})"


@dataclasses.dataclass
class Mutant:
    number: int
    header: str
    line: int
    kind: str
    change: str
    start: int  # offset in the header
    text: str  # of the line, without a comment


@dataclasses.dataclass
class Wrap:
    """One switch: text[start:end] becomes (switch(number) ? other : text[start:end])."""
    start: int
    end: int
    order: int  # among those around the same text, the lowest is the outermost
    number: int
    other: str
    switch: str
    cast: bool = False  # neither side has a value
    flip: bool = False  # no alternative text: negates the condition


COMPARISONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
LOGIC = {"&&": "||", "||": "&&"}
SIGNS = {"+": "-", "-": "+"}
COMPOUND = {"+=": "-=", "-=": "+="}
ONLY_SPEED = re.compile(r"\b(reserve|shrink_to_fit|__builtin_prefetch|prefetch)\s*\([^;]*\)$")
FUNCTIONS = ("FUNCTION_DECL", "CXX_METHOD", "FUNCTION_TEMPLATE", "CONSTRUCTOR", "DESTRUCTOR", "CONVERSION_FUNCTION")
LOOPS = ("WHILE_STMT", "FOR_STMT", "CXX_FOR_RANGE_STMT", "DO_STMT")
SKIPPED = ("STATIC_ASSERT", "CONCEPT_DECL", "TYPE_ALIAS_DECL", "TYPEDEF_DECL", "TYPE_ALIAS_TEMPLATE_DECL", "ENUM_DECL", "PARM_DECL",
           "TEMPLATE_NON_TYPE_PARAMETER", "TEMPLATE_TYPE_PARAMETER", "TEMPLATE_TEMPLATE_PARAMETER", "REQUIRES_EXPR",
           "CONCEPT_SPECIALIZATION_EXPR", "ALIGNED_ATTR")


def name(cursor):
    try:
        return cursor.kind.name
    except ValueError:  # newer than the bindings
        return "?"


def code(line):
    """A line of a header without its indentation and the comment at its end."""
    return re.sub(r'^((?:[^"]|"(?:[^"\\]|\\.)*")*?)\s*//.*$', r"\1", line).strip()


def plain(text):
    """Source text on one line, without comments."""
    if '"' not in text:
        text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"\s+", " ", text).strip()


class Header:
    def __init__(self, relative, text, first):
        self.relative, self.text, self.next = relative, text, first
        self.mutants, self.wraps = [], []
        self.seen = set()
        self.switch = "on"

    # ---- what is recorded

    def slice(self, cursor):
        return self.text[cursor.extent.start.offset:cursor.extent.end.offset]

    def add(self, cursor, kind, change, other="", order=9, **more):
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        return self.add_range(start, end, kind, change, other, order, **more)

    def add_range(self, start, end, kind, change, other, order, **more):
        key = (start, end, kind, other)
        if end <= start or key in self.seen or "\n#" in self.text[start:end] or self.text.startswith("SLUICE_", start):
            return None
        self.seen.add(key)
        number = self.next
        self.next += 1
        begin = self.text.rfind("\n", 0, start) + 1
        line = code(self.text[begin:self.text.find("\n", start)])
        mutant = Mutant(number, self.relative, self.text.count("\n", 0, start) + 1, kind, change, start, line)
        same = sum(m.line == mutant.line and m.change.split(" [")[0] == change for m in self.mutants)
        if same:
            mutant.change = f"{change} [{same + 1}]"
        self.mutants.append(mutant)
        self.wraps.append(Wrap(start, end, order, number, other, self.switch, **more))
        return number

    # ---- walking

    def declarations(self, cursor):
        kind = name(cursor)
        if kind in SKIPPED:
            return
        if kind in FUNCTIONS:
            return self.function(cursor)
        if kind in ("FIELD_DECL", "VAR_DECL"):
            return self.initialised(cursor, "later")
        for child in cursor.get_children():
            self.declarations(child)

    def function(self, cursor):
        body = [c for c in cursor.get_children() if name(c) in ("COMPOUND_STMT", "CXX_TRY_STMT")]
        if not body:
            return
        head = self.text[cursor.extent.start.offset:body[0].extent.start.offset]
        if re.search(r"\bconsteval\b", head):
            return
        before, self.switch = self.switch, "later" if re.search(r"\bconstexpr\b", head) else "on"
        if name(cursor) == "CONSTRUCTOR":
            for child in cursor.get_children():  # what members begin with
                if child.kind.is_expression():
                    self.expression(child)
        self.statement(body[0])
        self.switch = before

    def initialised(self, cursor, switch=None):
        text = self.slice(cursor)
        if re.search(r"\bconstexpr\b", text.split("=")[0]) or cursor.is_bitfield():
            return
        begin = max(cursor.location.offset + len(cursor.spelling), cursor.extent.start.offset)
        places = [p for p in (self.text.find(c, begin, cursor.extent.end.offset) for c in "={(") if p >= 0]
        if not places:
            return
        before, self.switch = self.switch, switch or self.switch
        for child in cursor.get_children():
            if child.extent.start.offset > min(places):  # not an array's bound
                self.expression(child)
        self.switch = before

    def statement(self, cursor):
        kind = name(cursor)
        children = list(cursor.get_children())
        if kind in SKIPPED:
            return
        if kind == "COMPOUND_STMT":
            for child in children:
                self.whole(child)
        elif kind == "IF_STMT":
            constant = re.match(r"if\s+(constexpr|consteval)\b", self.slice(cursor))
            for child in children:
                after = self.text[child.extent.end.offset:].lstrip()[:1]
                if child.kind.is_expression() and after == ")" and not self.is_body(cursor, child):
                    if not constant:
                        self.condition(child)
                else:
                    self.whole(child)
        elif kind in LOOPS:
            self.loop(kind, cursor, children)
        elif kind == "RETURN_STMT":
            for child in children:
                if child.type.get_canonical().kind == TypeKind.BOOL and not self.is_comparison(child):
                    self.add(child, "return", f"return !({plain(self.slice(child))})", order=2, flip=True)
                self.expression(child)
        elif kind in ("CASE_STMT", "DEFAULT_STMT", "LABEL_STMT"):
            for child in children[1 if kind == "CASE_STMT" else 0:]:
                self.whole(child)
        elif kind == "DECL_STMT" and re.match(r"(static\s+)?constexpr\b", self.slice(cursor)):
            return
        elif kind == "VAR_DECL":
            self.initialised(cursor)
        elif kind in FUNCTIONS:
            self.function(cursor)
        elif cursor.kind.is_expression():
            self.expression(cursor)
        else:  # declarations, switch, try, handlers
            for child in children:
                self.statement(child)

    @staticmethod
    def is_body(parent, child):
        return child.extent.end.offset == parent.extent.end.offset

    def loop(self, kind, cursor, children):
        for position, child in enumerate(children):
            last = child.extent.end.offset == cursor.extent.end.offset or (kind == "DO_STMT" and position == 0)
            if last or not child.kind.is_expression():
                self.whole(child)
            elif kind == "FOR_STMT" and self.text[child.extent.end.offset:].lstrip()[:1] == ")":
                self.inside(child)  # without ++, most loops never end, which shows nothing
            elif kind in ("WHILE_STMT", "DO_STMT"):
                self.condition(child)
            else:
                self.expression(child)

    def inside(self, cursor):
        for child in cursor.get_children():
            if name(child) == "UNARY_OPERATOR":
                continue
            self.expression(child) if child.kind.is_expression() else self.inside(child)

    def whole(self, cursor):
        """Visits a statement; one of its mutants leaves it out."""
        if cursor.kind.is_expression():
            self.dropped(cursor)
            self.expression(cursor, whole=True)
        else:
            self.statement(cursor)

    def dropped(self, cursor):
        kind, text = name(cursor), self.slice(cursor)
        children = list(cursor.get_children())
        if kind == "UNEXPOSED_EXPR" and len(children) == 1 and children[0].extent == cursor.extent:
            return self.dropped(children[0])
        if kind == "BINARY_OPERATOR" and cursor.spelling == ",":
            for child in cursor.get_children():
                self.dropped(child)
            return
        if not re.search(r"[(=]|\+\+|--|throw", text) or text.startswith("SLUICE_"):
            return  # a name, declared in a condition
        if ONLY_SPEED.search(text) or re.match(r"(static_cast<void>|\(void\))", text):
            return
        self.add(cursor, "dropped", f"dropped: {plain(text)}", "void()", order=0, cast=True)

    def condition(self, cursor):
        if not self.is_comparison(cursor):
            self.add(cursor, "condition", f"!({plain(self.slice(cursor))})", order=2, flip=True)
        self.expression(cursor)

    def is_comparison(self, cursor):
        kind, children = name(cursor), list(cursor.get_children())
        if kind == "UNEXPOSED_EXPR" and len(children) == 1:
            return self.is_comparison(children[0])
        if kind == "CALL_EXPR":
            return cursor.spelling in ("operator==", "operator!=") and len(list(cursor.get_arguments())) == 2
        return kind == "BINARY_OPERATOR" and cursor.spelling in COMPARISONS

    def expression(self, cursor, whole=False):
        kind = name(cursor)
        children = list(cursor.get_children())
        if kind in SKIPPED or kind == "CXX_UNARY_EXPR" or kind == "SIZE_OF_PACK_EXPR":
            return
        if kind == "COMPOUND_STMT" or cursor.kind.is_statement():
            return self.statement(cursor)
        if cursor.kind.is_declaration():
            return self.initialised(cursor) if kind == "VAR_DECL" else None
        if kind == "BINARY_OPERATOR":
            self.binary(cursor, children)
        elif kind == "COMPOUND_ASSIGNMENT_OPERATOR" and len(children) == 2 and cursor.spelling in COMPOUND:
            left, right = (plain(self.slice(c)) for c in children)
            other = f"{left} {COMPOUND[cursor.spelling]} {right}"
            self.add(cursor, "sign", f"{left} {cursor.spelling} {right} -> {other}", other)
        elif kind == "UNARY_OPERATOR" and not whole and len(children) == 1:
            text = self.slice(cursor)
            if text.startswith(("++", "--")) or text.endswith(("++", "--")):
                self.add(cursor, "increment", f"{plain(text)} -> {plain(self.slice(children[0]))}", plain(self.slice(children[0])))
        elif kind == "INTEGER_LITERAL":
            self.literal(cursor)
        elif kind == "CONDITIONAL_OPERATOR" and children and not self.is_comparison(children[0]):
            self.add(children[0], "condition", f"!({plain(self.slice(children[0]))})", order=2, flip=True)
        elif kind == "CALL_EXPR":
            self.call(cursor)
        for child in children:
            self.expression(child)

    # ---- expressions

    def between(self, first, second):
        return plain(self.text[first.extent.end.offset:second.extent.start.offset])

    def binary(self, cursor, children):
        sign = cursor.spelling
        if len(children) != 2 or self.between(*children) != sign:
            return
        left, right = (plain(self.slice(c)) for c in children)
        if sign in COMPARISONS:
            for other in COMPARISONS[sign]:
                self.add(cursor, "comparison", f"{left} {sign} {right} -> {other}", f"({left}) {other} ({right})")
        elif sign in LOGIC:
            both = f"(static_cast<bool>({left}) {LOGIC[sign]} static_cast<bool>({right}))"
            self.add(cursor, "logic", f"{left} {sign} {right} -> {LOGIC[sign]}", both)
        elif sign in SIGNS:
            self.add(cursor, "sign", f"{left} {sign} {right} -> {SIGNS[sign]}", f"{left} {SIGNS[sign]} ({right})")
        elif sign == ",":
            self.dropped(children[0])

    def literal(self, cursor):
        text = self.slice(cursor)
        if not re.fullmatch(r"[0-9][0-9a-fA-FxXuUlLbBzZ']*", text):
            return
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        if self.text[:start].rstrip()[-1:] == "<" and self.text[end:].lstrip()[:1] in (">", ","):
            return  # an argument of a template
        for sign in "+-":
            self.add(cursor, "literal", f"{text} -> {text} {sign} 1", f"({text} {sign} 1)")

    def call(self, cursor):
        text, arguments = self.slice(cursor), [a for a in cursor.get_arguments() if a is not None]
        if cursor.spelling in ("operator==", "operator!=") and len(arguments) == 2:
            sign = cursor.spelling[8:]
            if self.between(*arguments) == sign:
                left, right = (plain(self.slice(a)) for a in arguments)
                other = COMPARISONS[sign][0]
                self.add(cursor, "comparison", f"{left} {sign} {right} -> {other}", f"({left}) {other} ({right})")
            return
        best = re.match(r"(\(?)std::(min|max)\b", text)  # in parentheses where it may be a macro
        if best:
            other = "std::" + ("max" if best[2] == "min" else "min")
            self.add(cursor, "extreme", f"{plain(text)} -> {other}", plain(best[1] + other + text[best.end():]))
        if best or cursor.spelling.startswith("operator"):
            return
        for first, second in zip(arguments, arguments[1:]):
            self.swap(first, second)

    def swap(self, first, second):
        texts = plain(self.slice(first)), plain(self.slice(second))
        if not all(texts) or texts[0] == texts[1] or self.between(first, second) != ",":
            return
        kinds = [c.type.get_canonical() for c in (first, second)]
        scalar = (TypeKind.POINTER, TypeKind.ENUM, TypeKind.BOOL)
        for kind in kinds:
            if not (kind.kind in scalar or TypeKind.CHAR_U.value <= kind.kind.value <= TypeKind.LONGDOUBLE.value):
                if kind.kind != TypeKind.RECORD or name(first) != name(second) or name(first) not in ("DECL_REF_EXPR", "MEMBER_REF_EXPR"):
                    return
        if kinds[0].spelling.replace("const ", "") != kinds[1].spelling.replace("const ", ""):
            return
        number = self.add(first, "swapped", f"swapped: {texts[0]}, {texts[1]}", texts[1], order=1)
        if number is not None:
            start, end = second.extent.start.offset, second.extent.end.offset
            self.wraps.append(Wrap(start, end, 1, number, texts[0], self.switch))


def find(include, headers, flags):
    """Returns the mutants of each header (a path relative to the folder `include`); numbers begin with 1."""
    index = cindex.Index.create()
    source = "".join(f'#include "{header}"\n' for header in headers)
    unit = index.parse("all.cpp", args=["-std=c++20", "-xc++", f"-I{include}", *flags], unsaved_files=[("all.cpp", source)])
    for diagnostic in unit.diagnostics:
        if diagnostic.severity >= cindex.Diagnostic.Error:
            raise SystemExit(f"mutate: {diagnostic}")
    found, number = {}, 1
    wanted = {f"{include}/{header}": header for header in headers}
    tops = {}
    for cursor in unit.cursor.get_children():
        if cursor.location.file is not None and str(cursor.location.file) in wanted:
            tops.setdefault(str(cursor.location.file), []).append(cursor)
    for path, header in wanted.items():
        with open(path, encoding="latin-1", newline="") as file:  # Clang counts bytes
            text = file.read()
        one = found[header] = Header(header, text, number)
        for cursor in tops.get(path, []):
            one.declarations(cursor)
        number = one.next
    return found
