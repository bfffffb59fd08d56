# SPDX-License-Identifier: Apache-2.0
"""Models of Hugging Face transformers, with their KV cache, as models of sluice: docs/huggingface.md.

    model = sluice.huggingface.CausalLM(AutoModelForCausalLM.from_pretrained(name))
    results = sluice.generate(model, **tokenizer(texts, return_tensors="np", padding=True), num_beams=4)

Slots lie together in caches of transformers, in which every row ends at the last column: rows of one call that differ in length have
padding in front, which masks take out. Rows that come and go are gathered as the search says; a step that continues all rows of one
cache copies nothing.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

from ._library import ArgumentError
from ._model import Abilities, Limits, Row, Rows, Vocabulary

__all__ = ["CausalLM", "Seq2Seq"]

_RELATIVE = "relative_attention_num_buckets"  # T5 and its kin: positions are differences of columns


def _modules() -> tuple[Any, Any]:
    try:
        return importlib.import_module("torch"), importlib.import_module("transformers")
    except ImportError as error:
        raise ImportError(f"sluice.huggingface needs torch and transformers: pip install torch transformers ({error})") from None


class _Source:
    """What the encoder made of one input: [length, d]. A causal model has none."""

    def __init__(self, hidden: Any = None):
        self.hidden, self.length = hidden, 0 if hidden is None else int(hidden.shape[0])


class _Group:
    """Rows whose keys and values lie in one cache, [rows, heads, columns, d]; each row ends at the last column."""

    def __init__(self, cache: Any, columns: int, sources: list[_Source]):
        self.cache, self.columns, self.sources = cache, columns, sources
        self.width = max((source.length for source in sources), default=0)  # columns of the cross-attention


class _Slot(NamedTuple):
    group: _Group | None
    """None: it was started, and holds no token."""
    place: int
    """Its row in the group."""
    length: int
    source: _Source


class _Pretrained:
    """What both kinds of models share."""

    model: Any
    vocabulary: Vocabulary
    lookup: int
    abilities: Abilities
    limits: Limits
    token_bytes: Sequence[bytes] | None
    generation_config: Any
    is_encoder_decoder: bool = False
    kind = "logits"

    def __init__(self, model: Any, token_bytes: Sequence[bytes] | None, ragged: bool | None, lookup: int):
        self._torch, self._transformers = _modules()
        name = f"sluice.huggingface.{type(self).__name__}: model = {type(model).__name__}"
        if not hasattr(self._transformers.DynamicCache, "reorder_cache") or not hasattr(self._transformers.DynamicCache(), "layers"):
            raise ImportError(f"sluice.huggingface: transformers {self._transformers.__version__} is too old: its caches must have layers")
        config = getattr(model, "config", None)
        if config is None or not callable(getattr(model, "forward", None)):
            raise TypeError(f"{name}: must be a model of transformers with a language model's head, AutoModelForCausalLM.from_pretrained(...)")
        if bool(getattr(config, "is_encoder_decoder", False)) != self.is_encoder_decoder:
            raise TypeError(f"{name}: config.is_encoder_decoder is {not self.is_encoder_decoder}: use "
                            f"{'CausalLM' if self.is_encoder_decoder else 'Seq2Seq'}")
        if getattr(model, "_is_stateful", False):
            raise TypeError(f"{name}: has a recurrent state, which cannot be cut back or padded: write start and step (docs/python.md)")
        if getattr(model, "training", False):
            raise ArgumentError(f"{name}: is in training mode, in which it is random: call model.eval()")
        head = model.get_output_embeddings()
        if head is None:
            raise TypeError(f"{name}: has no output embeddings: must have a language model's head")
        self.model, self.generation_config, self.token_bytes, self.lookup = model, model.generation_config, token_bytes, lookup
        taken = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in taken else "past_key_values"
        self._keep_name = "logits_to_keep" if "logits_to_keep" in taken else None
        self._position_name, self._embedding = self._position_parameter(taken), None
        text = config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config
        relative = hasattr(text, _RELATIVE)
        if self._position_name is None and not relative:
            self._embedding = self._position_embedding()
        known = relative or self._position_name is not None or self._embedding is not None
        self.abilities = Abilities(ragged=known if ragged is None else ragged, blocks=True, roll_back=True)
        longest = None if relative else getattr(text, "max_position_embeddings", None)
        self.limits = Limits(length=longest if isinstance(longest, int) and longest > 0 else None)
        its = model.generation_config
        eos = its.eos_token_id if its.eos_token_id is not None else getattr(text, "eos_token_id", None)
        self.vocabulary = Vocabulary(int(head.weight.shape[0]), bos=self._begin(its, text),
                                     eos=() if eos is None else eos if isinstance(eos, int) else [int(token) for token in eos])
        self._slots: dict[int, _Slot] = {}

    def _position_parameter(self, taken: Any) -> str | None:
        return "position_ids" if "position_ids" in taken else None

    def _begin(self, generation: Any, config: Any) -> int:
        found = generation.bos_token_id if generation.bos_token_id is not None else getattr(config, "bos_token_id", None)
        return 0 if found is None else int(found)

    def _position_embedding(self) -> Any:
        """The decoder's module of positions, if it can be told them: BART, Marian and their kin count from the cache's length."""
        decoder = self.model.get_decoder() if hasattr(self.model, "get_decoder") else self.model
        found = getattr(decoder, "embed_positions", None)
        return found if found is not None and "position_ids" in inspect.signature(found.forward).parameters else None

    # ---- slots --------------------------------------------------------------------------------------------------------------

    def release(self, slots: list[int], /) -> None:
        for slot in slots:
            self._slots.pop(slot, None)

    def step(self, rows: Rows, /) -> Any:
        torch, wanted = self._torch, list(rows)
        before = [self._slots[row.from_] for row in wanted]
        parts: dict[int, list[int]] = {}  # rows of one call: those that begin, and others by their number of tokens
        for i, row in enumerate(wanted):
            parts.setdefault(len(row.tokens) if row.length else 0, []).append(i)
        with torch.inference_mode():
            made = self._gather(wanted, before, list(parts.values()))  # all copies, before anything is appended
            answers: list[Any] = [None] * len(wanted)
            for part, group in zip(parts.values(), made):
                answer = self._forward([wanted[i] for i in part], group)
                for index, i in enumerate(part):
                    row = wanted[i]
                    self._slots[row.to] = _Slot(group, index, row.length + len(row.tokens), before[i].source)
                    answers[i] = answer[index]
                if len(made) == 1 and all(row.lines == 1 for row in wanted):
                    return self._on_host(answer[:, -1])
            return self._on_host(torch.cat([answer[-row.lines:] for row, answer in zip(wanted, answers)]))

    def _on_host(self, scores: Any) -> Any:
        return scores.float().cpu()

    def _gather(self, rows: list[Row], before: list[_Slot], parts: list[list[int]]) -> list[_Group]:
        """For each part a cache of its rows, cut to their lengths. A cache that nobody else needs is used as it is."""
        written = {row.to for row in rows}
        kept: dict[int, list[int]] = {}  # of each cache the slots that this step leaves there
        for number, slot in self._slots.items():
            if number not in written and slot.group is not None:
                kept.setdefault(id(slot.group), []).append(number)
        readers: dict[int, int] = {}
        for part in parts:
            for number in {id(before[i].group) for i in part}:
                readers[number] = readers.get(number, 0) + 1
        made = []
        for part in parts:
            slots = [before[i]._replace(length=rows[i].length) for i in part]
            group = slots[0].group
            if group is None or rows[part[0]].length == 0:
                made.append(_Group(self._new_cache(), 0, [slot.source for slot in slots]))
                continue
            cut = any(rows[i].length != before[i].length for i in part)
            columns = max(slot.length for slot in slots)
            alone = all(slot.group is group for slot in slots)
            free = alone and id(group) not in kept and readers[id(group)] == 1
            if free and not cut and columns == group.columns:
                order = [slot.place for slot in slots]
                if order != list(range(len(group.sources))):
                    self._reorder(group, order)
                made.append(group)
            else:
                made.append(self._assemble(slots, columns, [before[i].length for i in part] if cut else None))
        for numbers in kept.values():
            self._shrink(numbers, readers)
        return made

    def _shrink(self, numbers: list[int], readers: dict[int, int]) -> None:
        """A cache of which rows have gone gives their memory back, if they are most."""
        slots = [self._slots[number] for number in numbers]
        group = slots[0].group
        if group is None or id(group) not in readers or 2 * len(slots) > len(group.sources):
            return
        new = self._assemble(slots, max(slot.length for slot in slots), None)
        for place, (number, slot) in enumerate(zip(numbers, slots)):
            self._slots[number] = slot._replace(group=new, place=place)

    def _reorder(self, group: _Group, order: list[int]) -> None:
        index = self._torch.tensor(order, device=self.model.device)
        sources = [group.sources[i] for i in order]
        if self.is_encoder_decoder:
            group.cache.self_attention_cache.reorder_cache(index)
            if any(one is not other for one, other in zip(sources, group.sources)) or len(sources) != len(group.sources):
                group.cache.cross_attention_cache.reorder_cache(index)
        else:
            group.cache.reorder_cache(index)
        group.sources = sources

    def _assemble(self, slots: list[_Slot], columns: int, held: list[int] | None) -> _Group:
        """A new cache of rows of any caches. held: the lengths before they are cut, if they are."""
        torch, device = self._torch, self.model.device
        groups: dict[int, tuple[Any, list[int]]] = {}
        for i, slot in enumerate(slots):
            groups.setdefault(id(slot.group), (slot.group, []))[1].append(i)
        new = _Group(None, columns, [slot.source for slot in slots])
        moves = []  # of each cache: its rows, where they go, its columns
        for group, places in groups.values():
            index = torch.tensor([slots[i].place for i in places], device=device)
            at = None
            if held is not None:
                begin = torch.tensor([group.columns - held[i] - (columns - slots[i].length) for i in places], device=device)
                at = (begin[:, None] + torch.arange(columns, device=device)).clamp_(0, group.columns - 1)
            moves.append((group, index, torch.tensor(places, device=device), at))

        def ends(tensors: list[Any]) -> Any:  # rows end at the last column
            made = []
            for tensor, (group, index, _, at) in zip(tensors, moves):
                if at is not None:
                    made.append(tensor[index[:, None], :, at].transpose(1, 2))
                else:
                    part = tensor[:, :, max(group.columns - columns, 0):].index_select(0, index)
                    made.append(part if part.shape[2] == columns else torch.nn.functional.pad(part, (0, 0, columns - part.shape[2], 0)))
            return joined(made)

        def begins(tensors: list[Any]) -> Any:  # sources begin at the first
            made = []
            for tensor, (_, index, _, _) in zip(tensors, moves):
                part = tensor[:, :, :new.width].index_select(0, index)
                made.append(part if part.shape[2] == new.width else torch.nn.functional.pad(part, (0, 0, 0, new.width - part.shape[2])))
            return joined(made)

        back = torch.argsort(torch.cat([places for _, _, places, _ in moves])) if len(moves) > 1 else None

        def joined(made: list[Any]) -> Any:
            return made[0] if back is None else torch.cat(made).index_select(0, back)

        caches = [group.cache for group, _, _, _ in moves]
        if self.is_encoder_decoder:
            new.cache = self._transformers.EncoderDecoderCache(self._moved([cache.self_attention_cache for cache in caches], ends),
                                                               self._moved([cache.cross_attention_cache for cache in caches], begins))
        else:
            new.cache = self._moved(caches, ends)
        return new

    def _moved(self, caches: list[Any], move: Any) -> Any:
        layers = zip(*(cache.layers for cache in caches))
        return self._transformers.DynamicCache([(move([layer.keys for layer in its]), move([layer.values for layer in its])) for its in layers])

    # ---- calls of the model --------------------------------------------------------------------------------------------------

    def _new_cache(self) -> Any:
        return self._transformers.DynamicCache()  # without a config: layers with a window keep all, and their mask has the window

    def _forward(self, rows: list[Row], group: _Group) -> Any:
        """Appends the rows' tokens; logits [rows, columns, V], of which the last count."""
        torch, device = self._torch, self.model.device
        width = max(len(row.tokens) for row in rows)
        group.columns += width
        ends = [row.length + len(row.tokens) for row in rows]
        tokens = torch.tensor([[0] * (width - len(row.tokens)) + row.tokens for row in rows], device=device)
        padded = min(ends) < group.columns
        mask = positions = None
        if padded:
            lengths = torch.tensor(ends, device=device)[:, None]
            mask = (torch.arange(group.columns, device=device) >= group.columns - lengths).long()
            positions = (lengths - width + torch.arange(width, device=device)).clamp_(min=0)
        arguments = self._inputs(tokens, mask, group)
        arguments[self._cache_name], arguments["use_cache"], arguments["return_dict"] = group.cache, True, True
        if self._keep_name is not None:
            arguments[self._keep_name] = max(row.lines for row in rows)
        hooks = []
        if positions is not None and self._position_name is not None:
            arguments[self._position_name] = positions
        elif positions is not None and self._embedding is not None:
            hooks = [self._embedding.register_forward_pre_hook(lambda _, given, named: (given, named | {"position_ids": positions}), with_kwargs=True),
                     # Some take the positions of one row, and give them a dimension in front.
                     self._embedding.register_forward_hook(lambda _, given, made: made[0] if made.dim() == 4 else made)]
        try:
            return self.model(**arguments).logits
        finally:
            for hook in hooks:
                hook.remove()

    def _inputs(self, tokens: Any, mask: Any, group: _Group) -> dict[str, Any]:
        raise NotImplementedError


class CausalLM(_Pretrained):
    """A decoder of transformers, AutoModelForCausalLM's: inputs are prompts.

    model
        In evaluation mode, on the processor or a device; sluice does not move it. Nothing else should call it meanwhile.
    token_bytes
        The bytes of each token, for grammars and stop strings.
    ragged
        Whether rows of one call may differ in length. None: if the model can be told positions.
    lookup
        Prompt lookup with the last so many tokens, for Blockwise.

    `generation_config` is the model's, from which generate() takes what its call does not say.
    """

    def __init__(self, model: Any, *, token_bytes: Sequence[bytes] | None = None, ragged: bool | None = None, lookup: int = 0):
        super().__init__(model, token_bytes, ragged, lookup)

    def start(self, sources: list[Any], slots: list[int], /) -> None:
        for slot in slots:
            self._slots[slot] = _Slot(None, 0, 0, _Source())

    def _inputs(self, tokens: Any, mask: Any, group: _Group) -> dict[str, Any]:
        return {"input_ids": tokens, "attention_mask": mask}


class Seq2Seq(_Pretrained):
    """An encoder and decoder of transformers, AutoModelForSeq2SeqLM's: inputs are sources, which are sequences of tokens.

    The arguments are those of CausalLM. Sources that begin together are encoded together.
    """

    is_encoder_decoder = True

    def __init__(self, model: Any, *, token_bytes: Sequence[bytes] | None = None, ragged: bool | None = None, lookup: int = 0):
        super().__init__(model, token_bytes, ragged, lookup)

    def _position_parameter(self, taken: Any) -> str | None:
        return "decoder_position_ids" if "decoder_position_ids" in taken else None

    def _begin(self, generation: Any, config: Any) -> int:
        for found in (generation.decoder_start_token_id, getattr(config, "decoder_start_token_id", None)):
            if found is not None:
                return int(found)
        return super()._begin(generation, config)

    def source_length(self, source: Any, /) -> int:
        return len(source)

    def start(self, sources: list[Any], slots: list[int], /) -> None:
        torch, device = self._torch, self.model.device
        lists = []
        for source in sources:
            tokens = source.tolist() if hasattr(source, "tolist") else source
            if not isinstance(tokens, Sequence) or isinstance(tokens, (str, bytes)) or not tokens:
                raise TypeError(f"a source is {source!r}: must be a sequence of tokens")
            lists.append(list(tokens))
        width = max(len(tokens) for tokens in lists)
        with torch.inference_mode():
            ids = torch.tensor([tokens + [0] * (width - len(tokens)) for tokens in lists], device=device)
            mask = (torch.arange(width, device=device) < torch.tensor([len(tokens) for tokens in lists], device=device)[:, None]).long()
            hidden = self.model.get_encoder()(input_ids=ids, attention_mask=mask, return_dict=True).last_hidden_state
            for tokens, its, slot in zip(lists, hidden, slots):
                self._slots[slot] = _Slot(None, 0, 0, _Source(its[:len(tokens)].clone()))

    def _new_cache(self) -> Any:
        return self._transformers.EncoderDecoderCache(super()._new_cache(), super()._new_cache())

    def _inputs(self, tokens: Any, mask: Any, group: _Group) -> dict[str, Any]:
        torch, device = self._torch, self.model.device
        lengths = [source.length for source in group.sources]
        first = group.sources[0].hidden
        if group.columns == tokens.shape[1]:  # it has no cache yet
            hidden = torch.nn.utils.rnn.pad_sequence([source.hidden for source in group.sources], batch_first=True)
        else:  # keys and values are in the cache: all that is looked at is a shape
            hidden = first.new_zeros(1, 1, 1).expand(len(lengths), group.width, first.shape[1])
        heard = None
        if min(lengths) < group.width:
            heard = (torch.arange(group.width, device=device) < torch.tensor(lengths, device=device)[:, None]).long()
        return {"encoder_outputs": self._transformers.modeling_outputs.BaseModelOutput(last_hidden_state=hidden), "attention_mask": heard,
                "decoder_input_ids": tokens, "decoder_attention_mask": mask}
