# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, driven over a pipe in its DevTools protocol: standard library only. And what the tests of
pages share: checks, and how they are run."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time


def find():
    """Where chromium is; None: nowhere."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if path := shutil.which(name):
            return path
    return None


failures = 0


def check(what, good):
    global failures
    if not good:
        failures += 1
        print("FAILED:", what)


def run(main):
    """The whole of a test: main(path of chromium, argument..., [folder of pictures]); ends the program."""
    arguments = [os.path.abspath(a) for a in sys.argv[1:] if a != "--pictures"]
    path = find()
    if path is None:
        print("SKIPPED: chromium was not found")
        sys.exit(0)
    main(path, *arguments)
    print("failed:", failures)
    sys.exit(1 if failures else 0)


class Browser:
    """One page of one browser with a profile of its own."""

    def __init__(self, path, width=1280, height=860):
        self.profile = tempfile.mkdtemp(prefix="page-test-")
        here_in, self.out = os.pipe()
        self.inn, here_out = os.pipe()

        def as_three_and_four():
            a, b = os.dup(here_in), os.dup(here_out)
            os.dup2(a, 3)
            os.dup2(b, 4)

        # --no-sandbox: in a container, as root, there is none to be had; the page is ours.
        self.process = subprocess.Popen(
            [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--disable-quic", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile}", f"--window-size={width},{height}", "about:blank"],
            preexec_fn=as_three_and_four, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(here_in)
        os.close(here_out)
        self.buffer, self.number, self.session = b"", 0, None
        self.errors, self.requests = [], []
        self.attach(next(t for t in self.targets() if t["type"] == "page"))
        self.resize(width, height)

    def targets(self):
        return self.call("Target.getTargets")["targetInfos"]

    def attach(self, target):
        self.session = None
        self.target = target["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def follow(self, prefix):
        """To the page that this one has opened at such an address; back() leads back."""
        self.before = (self.session, self.target)
        since = time.monotonic()
        while not (found := [t for t in self.targets() if t["type"] == "page" and t["url"].startswith(prefix)]):
            if time.monotonic() - since > 60:
                raise RuntimeError(f"there is no page at {prefix}: {self.targets()}")
            time.sleep(0.05)
        self.attach(found[0])
        self.ready(found[0]["url"])

    def back(self):
        """Closes what follow() went to."""
        self.call("Target.closeTarget", targetId=self.target)
        self.session, self.target = self.before

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, RuntimeError):
            self.process.kill()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, seconds):
        while b"\0" not in self.buffer:
            if not select.select([self.inn], [], [], seconds)[0]:
                raise RuntimeError("the browser says nothing")
            part = os.read(self.inn, 1 << 20)
            if not part:
                raise RuntimeError("the browser is gone")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while True:
            answer = self.receive(120)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def note(self, event):
        method, what = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.errors.append(str([a.get("value", a.get("description")) for a in what["args"]]))
        elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.errors.append(what["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def load(self, url):
        """Seconds until the page says that it is ready."""
        self.call("Page.navigate", url="about:blank")
        since = time.monotonic()
        self.call("Page.navigate", url=url)
        self.ready(url)
        return time.monotonic() - since

    def ready(self, url):
        since = time.monotonic()
        while self.evaluate("document.documentElement?.dataset.ready") != "true":
            if time.monotonic() - since > 100:
                raise RuntimeError(f"{url} is never ready: {self.errors}")
            time.sleep(0.02)
        self.settle()

    def texts(self, selector):
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)")

    def settle(self):
        """Two frames, so that what is drawn once a frame has been."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def press(self, *keys):
        """Real keys: names as in KeyboardEvent.key."""
        codes = {"Enter": 13, "Tab": 9, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36,
                 "End": 35, "Escape": 27}
        for key in keys:
            one = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key.upper()) if len(key) == 1 else 0)}
            if len(key) == 1 or key == "Enter":
                one["text"] = "\r" if key == "Enter" else key
            self.call("Input.dispatchKeyEvent", type="keyDown", **one)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key,
                      windowsVirtualKeyCode=one["windowsVirtualKeyCode"])
        self.settle()

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])
        self.settle()

    def picture(self, file):
        image = base64.b64decode(self.call("Page.captureScreenshot", format="png", optimizeForSpeed=False)["data"])
        with open(file, "wb") as out:
            out.write(image)
