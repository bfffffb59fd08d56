#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve_http.test.py SERVE_HTTP MODEL SAMPLE [--pictures FOLDER]: the page of serve_http, in a browser, by its keys.

--pictures writes those of docs/images/ too.
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request

sys.dont_write_bytecode = True
import browser  # noqa: E402  (beside this file)
from browser import check  # noqa: E402


class Page:
    def __init__(self, path, url):
        self.browser, self.url = browser.Browser(path, 900, 760), url
        self.browser.load(url)

    def text(self, selector):
        return self.browser.texts(selector)

    def set(self, field, value):
        self.browser.evaluate(f"""{{ const field = document.getElementById({json.dumps(field)});
          field.value = {json.dumps(value)}; field.dispatchEvent(new Event("change", {{bubbles: true}})); field.focus() }}""")

    def until(self, what, script):
        until = time.monotonic() + 60
        while not self.browser.evaluate(script):
            if time.monotonic() > until:
                check(f"never: {what}: {self.text('#state, #problem, #results')}", False)
                return
            time.sleep(0.02)

    def enter(self):
        self.browser.press("Enter")
        self.until("an end", "document.getElementById('stop').disabled")


def ask(url, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url + path, data, {"Content-Type": "application/json"})) as answer:
        return json.loads(answer.read())


def look(page, lines):
    press, text = page.browser.press, page.text
    # A sentence, typed; the numbers are those of the interface.
    page.set("text", lines[0])
    page.enter()
    result = ask(page.url, "translate", {"text": lines[0], "n_best": 5})["results"][0]
    check(f"the translation: {text('.best')}", text(".best") == [result["text"]])
    check("all hypotheses", text("td:first-child") == [h["text"] for h in result["hypotheses"]])
    check("their scores", text("td:nth-child(2)") == ["%.4f" % h["score"] for h in result["hypotheses"]])
    # How it was found, in a page of its own: the same hypotheses. The policy of both pages holds.
    check("a button", page.browser.evaluate("document.querySelector('.foot button').focus(), document.activeElement.textContent")
          == "Trace")
    press("Enter")
    page.until("a trace", "document.querySelector('.foot a') !== null")
    page.browser.follow("blob:")
    check(f"what the trace is of: {text('#about')}", text("#about") == [lines[0]])
    press(str(page.browser.texts("[role=tab]:not([hidden])").index("Results") + 1))
    found = text("#panel-results tbody tr td.text")
    check(f"its results: {found}", found == [h["text"] for h in result["hypotheses"]])
    check("nothing but the page's own script", page.browser.evaluate("""new Promise((done) => { window.hit = false;
      const script = document.createElement("script"); script.textContent = "window.hit = true";
      document.addEventListener("securitypolicyviolation", () => done(!window.hit), {once: true});
      document.body.append(script); setTimeout(() => done(false), 5000) })"""))
    refusals = [e for e in page.browser.errors if "Content Security Policy" in e]
    check(f"which the browser says: {page.browser.errors}", len(refusals) > 0 and refusals == page.browser.errors)
    page.browser.errors.clear()
    page.browser.back()
    check("a link is left", text(".foot a") == ["Trace"] and
          page.browser.evaluate("document.activeElement === document.querySelector('.foot a')"))
    # Several sentences: Shift and Enter does not send.
    page.set("text", "\n".join(lines[:3]))
    page.enter()
    check("three of three", text(".best") == [r["text"] for r in ask(page.url, "translate", {"text": lines[:3]})["results"]])
    # Words.
    page.set("text", "Unser Nachbar hat ein neues Auto gekauft.")
    page.set("all", "Toyota")
    page.set("none", "car")
    page.set("glossary", "Nachbar = neighbour\nNachbar = neighbor")
    page.set("width", "12")
    page.browser.evaluate("document.getElementById('text').focus()")
    page.enter()
    check(f"constraints: {text('.best')}", "Toyota" in text(".best")[0] and "car" not in text(".best")[0])
    check(f"what is met: {text('.good')}", text(".good") == ["2 of 2 constraints met"])
    # What makes no sense is said, and shown where it is.
    expected = len(page.browser.errors)
    page.set("width", "1000")
    press("Enter")
    page.until("a problem", "!document.getElementById('problem').hidden")
    check(f"the problem: {text('#problem')}", "width is not a whole number in 1 to 64: 1000" in text("#problem")[0])
    check("its field", page.browser.evaluate("document.activeElement.id + document.activeElement.getAttribute('aria-invalid')")
          == "widthtrue")
    page.set("width", "")
    page.set("glossary", "Nachbar")
    page.browser.evaluate("document.getElementById('text').focus()")
    press("Enter")
    page.until("another", "document.getElementById('problem').textContent.includes('has no =')")
    check("its field", page.browser.evaluate("document.activeElement.id") == "glossary")
    logged = [e for e in page.browser.errors[expected:] if "400" in e]
    check("the browser notes the refusal alone", page.browser.errors[expected:] == logged)
    del page.browser.errors[expected:]
    # Another search has other fields.
    page.set("search", "sample")
    check("fields of a sample", page.browser.evaluate("""document.getElementById('width').closest('[hidden]') !== null &&
      document.getElementById('seed').closest('[hidden]') === null"""))
    page.set("seed", "3")
    page.enter()
    check("nothing is wrong any more", page.browser.evaluate("document.querySelector('[aria-invalid]') === null"))
    check("five samples", len(text("td:first-child")) == 5)
    # Escape cancels, and the server stops working on it.
    page.set("search", "beam")
    page.set("glossary", "")
    page.set("width", "64")
    page.set("text", "\n".join(lines[:40]))
    press("Enter")
    page.until("work", "document.getElementById('state').textContent === 'translating'")
    press("Escape")
    page.until("an end", "document.getElementById('state').textContent === 'cancelled'")
    until = time.monotonic() + 30
    while ask(page.url, "health")["sentences_open"] > 0 and time.monotonic() < until:
        time.sleep(0.02)
    check("nothing is left", ask(page.url, "health")["sentences_open"] == 0)
    # Tab goes through all fields, and what is focused is shown.
    page.set("text", "")
    seen = set()
    for _ in range(12):
        press("Tab")
        seen.add(page.browser.evaluate("document.activeElement.id || document.activeElement.tagName"))
    check(f"by Tab: {seen}", {"search", "width", "n_best", "max_length", "SUMMARY", "go"} <= seen)
    # Markup stays text.
    page.set("text", "<img src=x onerror=alert(1)>")
    page.enter()
    check("no markup", page.browser.evaluate("document.querySelector('#results img') === null"))
    # On a narrow screen nothing is cut off.
    page.browser.resize(360, 700)
    check("narrow", page.browser.evaluate("document.documentElement.scrollWidth <= 360"))
    page.browser.resize(900, 760)


def main(path, program, model, sample, pictures=None):
    lines = open(sample, encoding="utf-8").read().splitlines()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen([program, "--model", model, "--port", "0"], stdout=subprocess.PIPE, text=True, env=environment)
    url = re.search(r"http://\S+", server.stdout.readline()).group()
    page = Page(path, url)
    try:
        look(page, lines)
        page.browser.load(url + "#" + urllib.request.quote(lines[0]))
        page.until("what is in the address", "document.querySelectorAll('td').length > 0")
        if pictures:
            os.makedirs(pictures, exist_ok=True)
            page.browser.load(url)
            page.browser.evaluate("document.getElementById('words').open = true")
            page.browser.resize(900, 1030)
            page.set("none", "car")
            page.set("text", "Unser Nachbar hat ein neues Auto gekauft.\nWo hast du meine Brille hingelegt?")
            page.set("n_best", "2")
            page.set("glossary", "Brille = spectacles\nNachbar = neighbor")
            page.browser.evaluate("document.getElementById('text').focus()")
            page.enter()
            for name, dark in (("serve_http", False), ("serve_http-dark", True)):
                page.browser.dark(dark)
                page.browser.picture(f"{pictures}/{name}.png")
        check(f"errors in the console: {page.browser.errors}", not page.browser.errors)
        outside = [one for one in page.browser.requests if not one.startswith((url, "about:", "data:", "blob:" + url))]
        check(f"requests: {outside}", not outside)
    finally:
        page.browser.close()
        server.terminate()
        check("exit code", server.wait(60) == 0)


if __name__ == "__main__":
    browser.run(main)
