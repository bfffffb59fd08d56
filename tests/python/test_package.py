# SPDX-License-Identifier: Apache-2.0
"""What the package says of itself: structs, options, presets, documentation."""
import ctypes as C
import dataclasses
import doctest
import inspect
import pathlib
import pydoc
import re
import subprocess
import sys
import unittest

import sluice
from sluice import _library, options, presets

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = (ROOT / "include/sluice/c/sluice.h").read_text()


class Structs(unittest.TestCase):
    def test_are_those_of_the_header(self):
        simple = {"float": C.c_float, "int32_t": C.c_int32, "size_t": C.c_size_t, "double": C.c_double, "uint64_t": C.c_uint64, "sluice_token": C.c_int32}
        text = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)
        found = dict((name, body) for body, name in re.findall(r"typedef struct sluice_\w+ \{(.*?)\} (sluice_\w+);", text, re.S))
        ours = {kind.__name__: kind for kind in vars(_library).values()
                if isinstance(kind, type) and issubclass(kind, C.Structure) and kind is not C.Structure}
        self.assertEqual(set(found), set(ours))
        for name, body in found.items():
            members = []
            for declaration in filter(str.strip, body.split(";")):
                declaration = " ".join(declaration.split())
                if function := re.match(r"\w+ \(\*(\w+)\)\(", declaration):
                    members.append((function[1], C.c_void_p))
                    continue
                kind, names = re.match(r"(.*?[ *])(\w+(?:, \w+)*)$", declaration).groups()
                for member in names.split(", "):
                    members.append((member, C.c_void_p if "*" in kind else simple[kind.strip()]))
            fields = ours[name]._fields_
            self.assertEqual([member for member, _ in members], [member for member, _ in fields], name)
            for (member, wanted), (_, kind) in zip(members, fields):
                self.assertEqual(C.sizeof(wanted), C.sizeof(kind), f"{name}.{member}")
                self.assertTrue(kind is wanted or wanted is C.c_void_p, f"{name}.{member}")

    def test_version(self):
        self.assertEqual(_library.ABI_VERSION, int(re.search(r"SLUICE_ABI_VERSION (\d+)", HEADER)[1]))
        self.assertRegex(sluice.__version__, r"^\d+\.\d+\.\d+$")

    def test_the_lock_of_python_is_not_held(self):
        self.assertIs(type(_library.library), C.CDLL)  # PyDLL would hold it

    def test_functions_are_those_of_the_header(self):
        declared = set(re.findall(r"^SLUICE_API sluice_status sluice_(\w+)\(", HEADER, re.M))
        self.assertEqual(declared, set(_library._FUNCTIONS))
        for name, arguments in _library._FUNCTIONS.items():
            given = re.search(rf"\bsluice_{name}\(([^)]*)\)", HEADER)[1]
            self.assertEqual(len(arguments), given.count(",") + 1, name)


def flat(value, path=""):
    """{path: value} of options within options."""
    found = {}
    for member in dataclasses.fields(value):
        one = getattr(value, member.name)
        if dataclasses.is_dataclass(one) and not isinstance(one, sluice.Search):
            found |= flat(one, f"{path}{member.name}.")
        else:
            found[path + member.name] = one.name if hasattr(one, "name") and not isinstance(one, str) else one
    return found


class Options(unittest.TestCase):
    def test_are_those_of_the_headers(self):
        run = subprocess.run([sys.executable, ROOT / "scripts/python-options"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_every_option_reaches_the_library(self):
        """A value that cannot be, or another one, of every option: the call that sets it knows its name."""
        for kind in (sluice.Greedy, sluice.BeamSearch, sluice.DiverseBeamSearch, sluice.Sample, sluice.StochasticBeam, sluice.Blockwise, sluice.ParticleSample,
                     sluice.CtcBeamSearch, sluice.TransducerBeam):
            handle = _library.create("search_create", kind._kind.encode())
            names = dict(kind._options)
            for member in dataclasses.fields(kind):
                part = getattr(kind(), member.name)
                names |= {f"{member.name}.{its}": c for its, c in getattr(part, "_options", {}).items()}
                for one in dataclasses.fields(part) if isinstance(part, sluice.Search) else ():
                    names |= {f"{member.name}.{one.name}.{its}": c for its, c in getattr(getattr(part, one.name), "_options", {}).items()}
            self.assertGreater(len(names), 8)
            for name, c_name in names.items():
                _library.call("search_set", handle, c_name.encode(), 1.0)
            with self.assertRaisesRegex(sluice.ArgumentError, "is no option"):
                _library.call("search_set", handle, b"no such", 1.0)
            _library.library.sluice_search_free(handle)

    def test_presets_are_those_of_the_header(self):
        text = (ROOT / "include/sluice/search/presets.hpp").read_text()
        found = re.findall(r"^inline BeamSearch (\w+)\((.*?)\) \{\n  return (\{.*?\});\n\}", text, re.M | re.S)
        self.assertEqual(len(found), 6)
        for name, parameters, body in found:
            values = {"k": 7}
            for parameter, default in re.findall(r"(\w+) = ([\w.:]+)", parameters):
                values[parameter] = default.split("::")[-1] if "::" in default else float(default)
            body = re.sub(r"\w+ == 0 \? [\w:]+ : ", "", body)  # none of the defaults is 0
            body = re.sub(r"\.(\w+) = ", r'"\1": ', body)
            body = re.sub(r"\w+(?:::\w+)*::(\w+)", r'"\1"', body).replace("true", "True").replace("false", "False")
            wanted = flat(sluice.BeamSearch())
            for key, value in eval(body, values).items():
                wanted |= {f"{key}.{its}": one for its, one in value.items()} if isinstance(value, dict) else {key: value}
            made = flat(getattr(presets, name)(7))
            self.assertEqual(made, wanted, name)

    def test_wrong_ones_are_refused(self):
        model = sluice.FunctionModel(lambda tokens: [0.0, 1.0], sluice.Vocabulary(2, eos=0))
        for search, message in [
                (sluice.BeamSearch(width=0), "width = 0: must be at least 1"),
                (sluice.BeamSearch(width=2, n_best=3), "n_best = 3"),
                (sluice.BeamSearch(width=2.5), "width = 2.5.*whole"),
                (sluice.BeamSearch(at_maximum="stop"), "at_maximum = 'stop': must be one of force_eos"),
                (sluice.BeamSearch(penalty=sluice.LengthPenalty("mean")), "penalty.kind = 'mean': must be one of none"),
                (sluice.Sample(temperature=0), "temperature = 0"),
                (sluice.Greedy(length=sluice.LengthLimits(max=-1)), "length.max = -1"),
                (sluice.Greedy(demanded=[[1]]), "only a beam"),
                (sluice.Greedy(penalties=sluice.Penalties(repetition=0)), "repetition = 0")]:
            with self.assertRaisesRegex(sluice.ArgumentError, message):
                sluice.decode(model, [None], search)
        for search, message in [(sluice.BeamSearch(width="wide"), "width = 'wide': must be a number"),
                                (sluice.Greedy(length=3), r"length = 3: must be LengthLimits"),
                                (sluice.Search(), "no search of its own"), ("beam", "search = 'beam'"),
                                (sluice.Greedy(forbidden=[3]), "forbidden = 3: must be a sequence of tokens")]:
            with self.assertRaisesRegex(TypeError, message):
                sluice.decode(model, [None], search)
        with self.assertRaises(TypeError):
            sluice.BeamSearch(beams=3)


class Documentation(unittest.TestCase):
    def test_all_names_are_public(self):
        """Type checkers refuse names that are imported and not in __all__."""
        names = {name for name, value in vars(sluice).items() if not name.startswith("_") and not inspect.ismodule(value)}
        self.assertEqual(names - {"version"}, set(sluice.__all__) - {"presets"})

    def test_help(self):
        text = pydoc.plain(pydoc.render_doc(sluice))
        for words in ("decoding algorithms for sequence models", "generate(model, inputs, ...)", "class Server"):
            self.assertTrue(words in text, words)
        for name in sluice.__all__:
            thing = getattr(sluice, name)
            if callable(thing):
                self.assertTrue(inspect.getdoc(thing), name)
                self.assertNotRegex(inspect.getdoc(thing), rf"^{name}\(", f"{name} has only what a dataclass writes")
        self.assertTrue((pathlib.Path(sluice.__file__).parent / "py.typed").exists())

    def test_every_option_has_a_description(self):
        source = inspect.getsource(options)
        for member in re.findall(r"^    (\w+): (?:int|float|bool)\b.*\n    (?!\"\"\")", source, re.M):
            self.fail(f"{member} has no description")

    def test_doctest(self):
        self.assertEqual(doctest.testmod(sluice, optionflags=doctest.NORMALIZE_WHITESPACE).failed, 0)

    def test_page(self):
        """Every example of these pages prints what the page says."""
        for name, least in ("python.md", 30), ("huggingface.md", 10), ("tool-calls.md", 15):
            page = ROOT / "docs" / name
            text = re.sub(r"^```.*$", "", page.read_text(), flags=re.M)
            examples = doctest.DocTestParser().get_doctest(text, {}, name, str(page), 0)
            self.assertGreater(len(examples.examples), least)
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
            self.assertEqual(runner.run(examples).failed, 0)


if __name__ == "__main__":
    unittest.main()
