# SPDX-License-Identifier: Apache-2.0
"""sluice.batch over Ray: two nodes of this machine, workers and nodes that die, the command line."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import sluice
import sluice.batch

try:
    import ray
    import ray.cluster_utils
    WHY = ""
except ImportError as error:
    WHY = f"SKIPPED: {error}"

WORKER = """
import os, pathlib, signal
import numpy as np
import sluice

def make():
    with open("made", "a") as file:
        file.write(f"{os.getpid()}\\n")
    model = sluice.FunctionModel(lambda tokens: np.eye(30)[(3 * tokens[-1] + 1) % 30], sluice.Vocabulary(30, eos=0))
    def work(lines):
        for line in lines:
            marker = pathlib.Path("killed-" + line)
            if line.startswith("die") and (line == "die always" or not marker.exists()):
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if line == "raise":
                raise RuntimeError("out of ideas")
        search = sluice.Greedy(length=sluice.LengthLimits(max=5))
        results = sluice.decode(model, [sluice.Request(prompt=[len(line) % 30], search=search) for line in lines])
        return [line.upper() + str(result.tokens) for line, result in zip(lines, results)]
    return work

def short():
    return lambda lines: lines[1:]
"""


def wanted(lines):
    made = []
    for line in lines:
        tokens = [len(line) % 30]
        while len(tokens) < 6 and not (len(tokens) > 1 and tokens[-1] == 0):
            tokens.append((3 * tokens[-1] + 1) % 30)
        made.append(line.upper() + str(tokens[1:]))
    return made


@unittest.skipIf(WHY, WHY)
class OverRay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.before = os.getcwd()
        os.chdir(cls.folder.name)
        pathlib.Path("worker.py").write_text(WORKER)
        sys.path.insert(0, cls.folder.name)
        cls.path = os.pathsep.join([cls.folder.name, str(pathlib.Path(sluice.__file__).parents[1])])
        cls.cluster = ray.cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 100_000_000})
        cls.second = cls.cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
        ray.init(address=cls.cluster.address, log_to_driver=False, logging_level="error",
                 runtime_env={"env_vars": {"PYTHONPATH": cls.path}})
        cls.make = staticmethod(__import__("worker").make)

    @classmethod
    def tearDownClass(cls):
        ray.shutdown()
        cls.cluster.shutdown()
        os.chdir(cls.before)
        cls.folder.cleanup()

    def made(self):
        """How often a worker was made since the last time."""
        found = pathlib.Path("made").read_text().split() if pathlib.Path("made").exists() else []
        pathlib.Path("made").unlink(missing_ok=True)
        return len(found)

    def test_1_order(self):
        self.made()
        lines = [f"line {'x' * (i * 7 % 31)}{i}" for i in range(100)]
        for size, ahead in (7, 8), (100, 1), (1, 2):
            taken = []
            def reading():
                for line in lines:
                    taken.append(line)
                    yield line
            found = []
            for answer in sluice.batch.stream(self.make, reading(), workers=2, size=size, ahead=ahead, options={"num_cpus": 1}):
                found.append(answer)
                self.assertLessEqual(len(taken), len(found) + size * (2 * ahead + 1))  # not all is read ahead
            self.assertEqual(found, wanted(lines))
        self.assertLessEqual(self.made(), 6)  # once each, of 24 parts
        self.assertEqual(list(sluice.batch.stream(self.make, [], workers=2, options={"num_cpus": 1})), [])

    def test_2_a_worker_is_killed(self):
        lines = [f"line {i}" for i in range(40)]
        lines[5], lines[6], lines[23] = "die 1", "die 2", "die 3"
        self.made()
        self.assertEqual(list(sluice.batch.stream(self.make, lines, size=4, options={"num_cpus": 1})), wanted(lines))
        self.assertEqual(self.made(), 5)

    def test_3_errors(self):
        for lines, message in (["a", "b", "c", "raise"], "lines 3 to 4:(.|\n)*out of ideas"), (["a", "b", "die always"], "lines 3 to 3: 2 workers have died"):
            with self.assertRaisesRegex(sluice.Error, message):
                list(sluice.batch.stream(self.make, lines, size=2, retries=1, options={"num_cpus": 1}))
        with self.assertRaisesRegex(sluice.Error, "1 answers for 2 lines"):
            list(sluice.batch.stream(__import__("worker").short, ["a", "b"], options={"num_cpus": 1}))
        for arguments, message in (dict(workers=0), "workers = 0"), (dict(size=0), "size = 0"), (dict(retries=-1), "retries = -1"):
            with self.assertRaisesRegex(sluice.ArgumentError, message):
                list(sluice.batch.stream(self.make, ["a"], **arguments))

    def test_4_command_line(self):
        lines = [f"line {i}" for i in range(30)]
        lines[11] = "die 4"
        pathlib.Path("in").write_text("\n".join(lines) + "\n")
        pathlib.Path("out").write_text("\n".join(wanted(lines[:3])) + "\nhalf a li")
        run = [sys.executable, "-m", "sluice.batch", "worker:make", "--address", self.cluster.address, "--cpus", "1", "--lines", "4", "--input", "in"]
        environment = dict(os.environ, PYTHONPATH=self.path)
        done = subprocess.run([*run, "--output", "out"], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("out: is there already", done.stderr)
        done = subprocess.run([*run, "--output", "out", "--resume"], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(pathlib.Path("out").read_text().split("\n")[:-1], wanted(lines))

    def test_5_a_node_is_lost(self):
        lines = [f"line {i}" for i in range(60)]
        found = []
        for answer in sluice.batch.stream(self.make, lines, workers=1, size=3, ahead=2, options={"num_cpus": 1, "scheduling_strategy": "SPREAD"}):
            found.append(answer)
            if len(found) == 6:
                self.cluster.remove_node(self.second)
        self.assertEqual(found, wanted(lines))


if __name__ == "__main__":
    if WHY:
        print(WHY)
    else:
        unittest.main()
