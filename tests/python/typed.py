# SPDX-License-Identifier: Apache-2.0
"""What a type checker says of programs: nothing but what is marked. tests/python/run.py runs mypy --strict over it, and over the package."""
from __future__ import annotations

from typing import Any

import sluice
import sluice.batch
import sluice.huggingface


class Counting:
    """A model is whatever has its members."""

    vocabulary = sluice.Vocabulary(7, bos=0, eos=[0])

    def start(self, sources: list[Any], slots: list[int]) -> None:
        self.first = slots[0]

    def step(self, rows: sluice.Rows) -> list[list[float]]:
        return [[float(row.length)] * 7 for row in rows]


class NoStep:
    vocabulary = sluice.Vocabulary(7)

    def start(self, sources: list[Any], slots: list[int]) -> None: ...


def models(model: sluice.Model) -> None:
    results: list[sluice.Result] = sluice.decode(model, [None, sluice.Request(prompt=[1])], sluice.BeamSearch(width=2).replace(n_best=2))
    tokens: list[int] = results[0].tokens
    print(tokens, [hypothesis.log_prob for hypothesis in results[0]])
    sluice.decode(NoStep(), [None])  # error: no step
    sluice.decode(model, [None], errors="rise")  # error: raise or return
    sluice.FunctionModel(lambda tokens: [0.0], sluice.Vocabulary(1), kind="logprobs")  # error: log_probs
    sluice.decode(sluice.Fused(model, model, weight=0.5), [None])
    sluice.Server(sluice.Decoder(model)).submit(None).result().tokens.append(1)


def tools(model: sluice.Model) -> None:
    decoder = sluice.Decoder(model)
    grammar: sluice.Grammar = sluice.Grammar.tool_calls([{"name": "now"}], "hermes", tool_choice={"type": "function", "function": {"name": "now"}})
    sluice.Grammar.tool_calls([], parallel=False)  # error: parallel_tool_calls
    parser = sluice.ToolCallParser("hermes", [{"name": "now"}])
    for event in parser.append(decoder.spelling(decoder.decode([None], sluice.Greedy(grammar=grammar))[0].tokens)):
        print(event.kind == "begun", event.text.upper(), parser.calls[event.call].arguments.upper(), parser.content.upper())


def frames(matrix: Any) -> None:
    decoder = sluice.CtcDecoder(["", "a", "b"], search=sluice.CtcBeamSearch(width=8), hotwords={"ab": 3.0}, kind="log_probs")
    words: list[sluice.FramesWord] = decoder.decode(matrix, [3], threads=2)[0].words
    print(words[0].confidence.hex(), decoder.stream().finish().text.upper(), decoder.align(matrix, "ab").frames[0][1].bit_length())
    sluice.CtcDecoder(["", "a"], search=sluice.BeamSearch())  # error: CtcBeamSearch
    sluice.CtcDecoder(["", "a"], kind="logprobs")  # error: log_probs
    sluice.Transducer(NoStep())  # error: no join
    sluice.CtcDecoder(["", "a"], language_model=lambda labels: [0.0] * len(labels), weights=sluice.FusionWeights(0.5))
    sluice.CtcDecoder(["", "a"], language_model=Counting(), language_model_tokens=[0, 1])
    sluice.CtcDecoder(["", "a"], language_model=3)  # error: no model


def transducers(network: sluice.TransducerNetwork) -> None:
    stream: sluice.TransducerStream = sluice.Transducer(network).stream(None, sluice.TransducerBeam(width=4))
    print([result.text.upper() for result in stream.append([1])], stream.settled.upper(), stream.finish().frames.bit_length())
    sluice.Transducer(network).stream(None, sluice.CtcBeamSearch())  # error: of transducers


def hugging_face() -> None:
    model = Counting()
    models(model)
    sluice.generate(model, [[1]], num_beams=2, early_stopping="never", max_new_tokens=3, seed=1)[0].score.hex()
    sluice.generate(model, [[1]], num_beam=2)  # error: num_beams
    sluice.generate(model, [[1]], early_stopping="always")  # error: never
    sluice.generate(model, [[1]], max_new_tokens="3")  # error: a number
    sluice.generate(model, [[1]], penalty_alpha=0.6)  # error: refused
    sluice.generate(model, [[1]], prefix_allowed_tokens_fn=lambda number, tokens: [1], sequence_bias={(1, 2): 0.5}, top_logprobs=2)
    models(sluice.huggingface.CausalLM(None, ragged=True))
    sluice.generate(sluice.huggingface.Seq2Seq(None, lookup=3), [[1]], num_beams=2)[0].tokens.append(1)
    sluice.huggingface.CausalLM(None, ragged="yes")  # error: a bool


def lines() -> None:
    for answer in sluice.batch.stream(lambda: lambda texts: texts, ["a"], workers=2, options={"num_gpus": 1}):
        print(answer)
    sluice.batch.stream(lambda: 1, ["a"])  # error: a function that makes one
