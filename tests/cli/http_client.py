# SPDX-License-Identifier: Apache-2.0
"""What clients of servers share, for scripts called as SCRIPT COMMAND PORT [ARGUMENT]...: requests, numbers, checks."""
import http.client
import json
import re
import socket
import sys
import time

port = int(sys.argv[2])
failures = []


def check(what, good):
    if not good:
        failures.append(what)


def post(path, body, headers=(), timeout=60):
    """Code and text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, data, {"Content-Type": "application/json", **dict(headers)})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text, response


def metrics():
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    values = dict(re.findall(r"^(\w+(?:{[^}]*})?) ([-+.e\d]+)$", text, re.M))
    return {name: float(value) for name, value in values.items()}


def wait_for(what, condition, seconds=30):
    until = time.time() + seconds
    while time.time() < until:
        if condition(metrics()):
            return
        time.sleep(0.02)
    check("never: " + what + ": " + str(metrics()), False)


def raw(data, seconds=20, shutdown=False):
    """All that comes back for these bytes."""
    client = socket.create_connection(("127.0.0.1", port), timeout=seconds)
    client.sendall(data)
    if shutdown:
        client.shutdown(socket.SHUT_WR)
    got = b""
    try:
        while more := client.recv(65536):
            got += more
    except ConnectionResetError:
        pass
    client.close()
    return got


def head(length, extra="", path="/translate"):
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{extra}"
            f"Content-Length: {length}\r\n\r\n").encode()


def lines():
    return sys.stdin.read().split("\n")[:-1]


def events(text):
    for event in text.split("\n\n")[:-1]:
        name, data = re.fullmatch(r"event: (\w+)\ndata: (.*)", event).groups()
        yield name, json.loads(data)


def finish():
    """Says what went wrong, if anything; the last line of a script."""
    for failure in failures[:20]:
        print("FAILED:", failure, file=sys.stderr)
    sys.exit(len(failures) > 0)
