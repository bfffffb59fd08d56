# SPDX-License-Identifier: Apache-2.0
"""A server: many requests over one model, in a thread of the library."""

from __future__ import annotations

import asyncio
import concurrent.futures
import ctypes as C
import queue as queues
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

from ._decode import Decoder, Result, to_request, to_result
from ._language import AnyModel
from ._library import CDelivery, CRequest, Delta, Done, Error, RefusedError, call, create, library, real, u64, whole
from ._search import Search, SearchHandle
from .options import Greedy


class Submission(concurrent.futures.Future[Result]):
    """A request that a server has taken: a Future of its Result."""

    def __init__(self, server: Server | None, errors: str):
        super().__init__()
        self.id: int | None = None
        """The request's number; of its result, too."""
        self._server, self._errors = server, errors
        self._source: int | None = None
        self._trace: Any = None
        self._kept: Any = None  # what the library calls for it
        self._delta: Callable[[list[int]], None] | None = None

    def cancel(self) -> bool:
        """Asks the server to end the request, and returns whether it could still be asked. This is less, and more, than what
        `concurrent.futures.Future.cancel` does: the future is not cancelled (`cancelled()` stays False, nothing raises CancelledError).
        It gets a result soon, which has the failure "cancelled" and the output so far: `result()` raises it as a DecodingError, or
        returns it where the server's errors are "return". A request that ends meanwhile has the result that it has."""
        server = self._server
        if self.done() or server is None or self.id is None:
            return False
        server._cancel(self.id)
        return True

    def _deliver(self, result: Result) -> None:
        error = result.error() if self._errors == "raise" else None
        if error is not None:
            self.set_exception(error)
        else:
            self.set_result(result)


class Stream:
    """The output of one request as it grows: iterate over it, with `for` or `async for`. Each item is the list of tokens that have
    become certain since the last one; in the end they are the tokens of the best hypothesis. `result` is the Result, afterwards.
    """

    def __init__(self, submission: Submission | None = None):
        self._submission: Any = submission
        self._events: queues.SimpleQueue[list[int] | None] = queues.SimpleQueue()
        self._wake: Callable[[], None] | None = None
        self._seen = 0
        self._ended = False

    @property
    def result(self) -> Result:
        """The request's result; waits for it."""
        found: Result = self._submission.result()
        return found

    def cancel(self) -> bool:
        """As that of Submission."""
        return bool(self._submission.cancel())

    def _put(self, tokens: list[int] | None) -> None:
        self._events.put(tokens)
        wake = self._wake
        if wake is not None:
            wake()

    def _rest(self) -> list[int]:
        """What the result has beyond what was settled; raises what failed."""
        self._ended = True
        result = self._submission.result()
        return result.hypotheses[0].tokens[self._seen:] if result.hypotheses else []

    def _new(self, tokens: list[int]) -> list[int]:
        self._seen += len(tokens)
        return tokens

    def __iter__(self) -> Iterator[list[int]]:
        while not self._ended:
            tokens = self._events.get()
            new = self._rest() if tokens is None else self._new(tokens)
            if new:
                yield new

    async def __aiter__(self) -> AsyncIterator[list[int]]:
        loop, event = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # the loop has closed: nobody waits
                pass

        self._wake = wake
        while not self._ended:
            event.clear()
            try:
                tokens = self._events.get_nowait()
            except queues.Empty:
                await event.wait()
                continue
            new = self._rest() if tokens is None else self._new(tokens)
            if new:
                yield new


class _State:
    """What the server's thread writes to; it does not keep the server alive."""

    def __init__(self, shared: Any):
        self.shared = shared  # with the tables of the model
        self.submissions: dict[int, Submission] = {}
        self.changed = threading.Condition()
        self.entered = 0  # calls of the library that need the server
        self.kept: list[Any] = []  # what the library calls
        self.done, self.delta = Done(self._on_done), Delta(self._on_delta)

    def _on_done(self, user: Any, seen: Any) -> None:
        with self.changed:
            submission = self.submissions.pop(user)
        self.shared.remove_source(submission._source)
        try:
            submission._deliver(to_result(seen.contents, self.shared, submission._trace))
        except BaseException as error:
            submission.set_exception(error)
        with self.changed:
            self.changed.notify_all()

    def _on_delta(self, user: Any, _id: int, tokens: Any, count: int) -> None:
        submission = self.submissions.get(user)
        if submission is not None and submission._delta is not None and count:
            try:
                submission._delta(tokens[:count])
            except Exception:
                submission._delta = None
                sys.excepthook(*sys.exc_info())  # nobody above could catch it


def _free(server: int, _state: _State, decoder: Decoder) -> None:
    library.sluice_server_free(server)  # cancels what is left; callbacks come before it returns
    decoder._served = False
    decoder._lock.release()


class Server:
    """Decodes requests as they come, up to `batch` together, in a thread of the library; submit from any thread.

    model
        A model, or a Decoder. It belongs to the server until that is freed.
    queue
        How many requests may wait beside those that are decoded; submitting blocks while more would.
    errors
        "raise": a failed request's future raises what the model raised, or a DecodingError. "return": results say what failed.

    A context manager: at its end, requests that are left are served; after an exception they are cancelled.
    """

    def __init__(self, model: AnyModel | Decoder, search: Search | None = None, *, batch: int = 64, queue: int = 1024,
                 errors: Literal["raise", "return"] = "raise"):
        if errors not in ("raise", "return"):
            raise ValueError(f'sluice: errors = {errors!r}: must be "raise" or "return"')
        batch, queue = whole(batch, "batch", 1, 2**30), whole(queue, "queue", 1, 2**30)
        self._decoder = model if isinstance(model, Decoder) else Decoder(model)
        self._errors, self._room = errors, batch + queue
        self._closed = False
        self._next = 0
        if getattr(self._decoder.model, "token_bytes", None) is not None:
            self._decoder._set_bytes()  # not while it runs
        its_search = self._decoder._search(Greedy() if search is None else search)
        if not self._decoder._lock.acquire(blocking=False):  # until the server is freed
            raise Error("sluice: the model is in use: it belongs to a server, or another thread decodes with it")
        self._decoder._served = True
        self._decoder._state.stops_at, self._decoder._state.stopped_by = (), None
        try:
            self._handle = create("server_create", self._decoder._handle, its_search.handle, batch, batch + queue)
        except BaseException:
            self._decoder._served = False
            self._decoder._lock.release()
            raise
        self._state = _State(self._decoder._state)
        self._state.kept += its_search.kept
        self._finalizer = weakref.finalize(self, _free, self._handle, self._state, self._decoder)

    def _alive(self) -> None:
        if self._closed:
            raise RefusedError("sluice: the server has closed")

    def submit(self, request: Any, *, seconds: float = 0, delta: Callable[[list[int]], None] | None = None) -> Submission:
        """Takes a request (anything but a Request is the source of one), and returns a Future of its Result.

        seconds
            A time limit: then the request fails as "late". 0: none.
        delta
            Called, in the server's thread, with what is new of the output that is certain, as it grows.
        """
        self._alive()
        if delta is not None and not callable(delta):
            raise TypeError(f"sluice: delta = {delta!r}: must be a function of a list of tokens")
        submission = Submission(self, self._errors)
        submission._delta = delta
        self._submit(submission, request, seconds)
        return submission

    def _submit(self, submission: Submission, request: Any, seconds: float) -> None:
        state = self._state
        with state.changed:  # wait here, where Ctrl-C is heard, rather than in the library
            state.changed.wait_for(lambda: len(state.submissions) < self._room or self._closed)
            self._alive()
            self._next += 1
            key = self._next
            state.submissions[key] = submission
            state.entered += 1
        filled, number = CRequest(), u64()
        searches: dict[int, SearchHandle] = {}  # they live until the call below has returned, what they call until the end
        try:
            asked = to_request(request)
            self._decoder._refuse_prompt(asked, key - 1)
            submission._source, submission._trace, _alive = self._decoder._fill(filled, asked, searches)
            submission._kept = [search.kept for search in searches.values()]
            delivery = CDelivery(size=C.sizeof(CDelivery), user=key, done=state.done, seconds=real(seconds, "seconds"))
            if submission._delta is not None:
                delivery.delta = state.delta
            submission.set_running_or_notify_cancel()
            call("server_submit", self._handle, C.byref(filled), C.byref(delivery), C.byref(number))
        except BaseException:
            with state.changed:
                state.submissions.pop(key, None)
                state.changed.notify_all()
            self._decoder._state.remove_source(submission._source)
            raise
        finally:
            self._leave()
        submission.id = number.value

    def stream(self, request: Any, *, seconds: float = 0) -> Stream:
        """Takes a request, and returns its output as it grows: a Stream, for `for` and `async for`."""
        made = Stream()
        submission = made._submission = self.submit(request, seconds=seconds, delta=made._put)
        submission.add_done_callback(lambda _: made._put(None))
        return made

    async def decode(self, request: Any, *, seconds: float = 0) -> Result:
        """Takes a request and awaits its Result, in any event loop. If the task is cancelled, so is the request."""
        loop = asyncio.get_running_loop()
        if len(self._state.submissions) < self._room:
            submission = self.submit(request, seconds=seconds)
        else:  # it would block the loop
            submission = await loop.run_in_executor(None, lambda: self.submit(request, seconds=seconds))
        done = loop.create_future()

        def end() -> None:
            if not done.done():
                done.set_result(None)

        def wake(_: Any) -> None:
            try:
                loop.call_soon_threadsafe(end)
            except RuntimeError:
                pass

        submission.add_done_callback(wake)
        try:
            await done
        except asyncio.CancelledError:
            submission.cancel()
            raise
        return submission.result()

    def _leave(self) -> None:
        with self._state.changed:
            self._state.entered -= 1
            self._state.changed.notify_all()

    def _cancel(self, number: int) -> None:
        with self._state.changed:
            if self._closed:
                return  # which cancels everything
            self._state.entered += 1
        try:
            call("server_cancel", self._handle, number)
        finally:
            self._leave()

    def drain(self) -> None:
        """Waits until every request has its result."""
        state = self._state
        with state.changed:
            state.changed.wait_for(lambda: not state.submissions)

    def close(self) -> None:
        """Refuses requests from now on, and frees the server; what is left is cancelled: drain() first to have it served."""
        if self._closed:
            return
        with self._state.changed:
            self._closed = True
            self._state.changed.notify_all()
            self._state.changed.wait_for(lambda: not self._state.entered)
        call("server_close", self._handle)
        self._finalizer()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None and not self._closed:
            self.drain()
        self.close()
