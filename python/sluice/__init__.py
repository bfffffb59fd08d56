# SPDX-License-Identifier: Apache-2.0
"""sluice: decoding algorithms for sequence models.

You bring a model; sluice brings greedy and beam search with the rules of other engines, sampling, beams without replacement,
speculative decoding in blocks, grammars, catalogues, batching and a server.

A model is an object with a vocabulary, `start(sources, slots)` and `step(rows)` (see Model), or, for first experiments, a function
from tokens to scores:

>>> import numpy, sluice
>>> follows = numpy.log([[0.1, 0.6, 0.3], [0.7, 0.1, 0.2], [0.5, 0.4, 0.1]])
>>> model = sluice.FunctionModel(lambda tokens: follows[tokens[-1]], sluice.Vocabulary(size=3, eos=0), kind="log_probs")
>>> result, = sluice.decode(model, [None], sluice.BeamSearch(width=2, n_best=2))
>>> result.tokens
[1, 0]

decode(model, requests, search)     results of many requests, in their order
generate(model, inputs, ...)        the same, with the arguments of Hugging Face's generate
Server(model, search)               requests as they come: futures, streams of tokens, asyncio
Greedy, BeamSearch, DiverseBeamSearch, Sample, StochasticBeam, ParticleSample, Blockwise
                                    searches: dataclasses with the options of the C++ library
presets                             the beam searches of other engines
Grammar, Catalogue                  what outputs must be
ToolCallParser                      calls of tools, read from what a model writes
Bias, BiasedPhrase                  what they should rather contain
NGrams, NGramModel, Fused           language models beside a model
Watermark, WatermarkKey             marks in outputs; detect_watermark(tokens, watermark) finds them
SuffixCache, WithSuffixCache        guesses from what was decoded before
CtcDecoder, CtcBeamSearch           texts of frames: words, n-grams, hotwords, streams, forced alignment
Transducer, TransducerBeam, TransducerGreedy
                                    the same for RNN-T and TDT, over a network in Python

Decoding lets other Python threads run, except while it is in the model. docs/python.md has more.
"""

from . import presets
from ._ctc import CtcAlignment, CtcDecoder, CtcStream, FramesHypothesis, FramesResult, FramesWord, FusionWeights
from ._decode import Decoder, DecodingError, Hypothesis, Request, Result, decode
from ._generate import generate
from ._language import Fused, NGramModel, NGrams
from ._library import ArgumentError, Error, RefusedError, version
from ._model import Abilities, Draft, FunctionModel, Limits, Model, Row, Rows, Vocabulary
from ._search import Bias, BiasedPhrase, Catalogue, Grammar, Search
from ._server import Server, Stream, Submission
from ._suffix import SuffixCache, WithSuffixCache
from ._tools import ToolCall, ToolCallEvent, ToolCallParser
from ._trace import Trace
from ._transducer import JoinerRows, PredictorRows, Transducer, TransducerNetwork, TransducerStream
from ._watermark import WatermarkDetection, WatermarkKey, WatermarkWindow, detect_watermark
from .options import (UNLIMITED, AtMaximum, BeamSearch, Blockwise, CtcBeamSearch, DiverseBeamSearch, EarlyStopping, EarlyStoppingRule, Endpoint,
                      FinishedHypotheses, Greedy, LengthLimits, LengthPenalty, LengthPenaltyKind, NoRepeatNgram, ParticleSample, Penalties, Proposal, Pruning, Sample,
                      Stage, StochasticBeam, TransducerBeam, TransducerGreedy,
                      TransducerOrder, Watermark, WatermarkPrf, WatermarkScheme)

__version__ = version
for _error in Error, ArgumentError, RefusedError, DecodingError:
    _error.__module__ = "sluice"  # as tracebacks name it

__all__ = [
    "Abilities", "ArgumentError", "AtMaximum", "BeamSearch", "Bias", "BiasedPhrase", "Blockwise", "Catalogue",
    "CtcAlignment", "CtcBeamSearch", "CtcDecoder", "CtcStream", "Decoder", "DecodingError", "DiverseBeamSearch", "Draft",
    "EarlyStopping", "EarlyStoppingRule", "Endpoint", "Error", "FinishedHypotheses", "FramesHypothesis", "FramesResult",
    "FramesWord", "FunctionModel", "Fused", "FusionWeights", "Grammar", "Greedy", "Hypothesis", "JoinerRows", "LengthLimits",
    "LengthPenalty", "LengthPenaltyKind", "Limits", "Model", "NGramModel", "NGrams", "NoRepeatNgram",
    "ParticleSample", "Penalties", "PredictorRows", "Proposal", "Pruning", "RefusedError", "Request", "Result",
    "Row", "Rows", "Sample", "Search", "Server", "Stage", "StochasticBeam", "Stream", "Submission",
    "SuffixCache", "ToolCall", "ToolCallEvent", "ToolCallParser", "Trace", "Transducer", "TransducerBeam", "TransducerGreedy",
    "TransducerNetwork", "TransducerOrder", "TransducerStream", "UNLIMITED", "Vocabulary", "Watermark", "WatermarkDetection", "WatermarkKey",
    "WatermarkPrf", "WatermarkScheme", "WatermarkWindow", "WithSuffixCache", "decode", "detect_watermark",
    "generate", "presets",
]
