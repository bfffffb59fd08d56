// SPDX-License-Identifier: Apache-2.0
#include "expected.h"

#include <sluice/catalogue/catalogue_builder.hpp>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/trace_each.hpp>
#include <sluice/decode/trace_file.hpp>
#include <sluice/decode/trace_page.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/model/fused.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/phrase.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/particle_sample.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/prompt_lookup.hpp>
#include <sluice/speculative/suffix_cache.hpp>
#include <sluice/version.hpp>
#include <sluice/watermark/detect_watermark.hpp>
#include <sluice/watermark/watermark.hpp>

#include "grammars.h"
#include <support/table_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

using namespace sluice;

namespace {

using Table = test::TableModel<Abilities{.ragged = true, .blocks = true, .roll_back = true}>;

InCatalogue items() {
  CatalogueBuilder builder;
  std::size_t at = 0;
  for (auto const length : item_lengths) {
    builder.add(std::span(item_tokens).subspan(at, length));
    at += length;
  }
  return InCatalogue(builder.build());
}

/// Where the trace of what is decoded goes, if somewhere.
struct Tracing {
  std::string about;
  std::ostringstream lines;
};
std::optional<Tracing> tracing;

/// Decoded alone; as request number `id` of a decoder, if it is traced.
template <class S>
Result decoded(std::uint64_t source, std::uint64_t id, S const& search, std::vector<Token> const& prefix = {}) {
  Table model;
  Decoder decoder(model, search, Streaming{.size = 1, .refill_below = 1}, LogSoftmaxTopK(),
                  TraceEach<TraceFile>([](std::uint64_t number) {
                    TokenBytes const bytes(std::vector<std::string>(std::begin(table_texts), std::end(table_texts)));
                    TraceFile made(tracing->lines, [bytes](Token token) { return std::string(bytes.bytes(token)); });
                    made.describe(number, tracing->about);
                    return made;
                  }));
  for (std::uint64_t before = 0; tracing && before < id; ++before)
    decoder.submit({.source = 1, .prefix = {-1}});  // which is refused
  decoder.submit({.source = source, .prefix = prefix, .seed = id, .traced = tracing.has_value()});
  while (decoder.step()) {
  }
  Result result;
  while (decoder.poll(result)) {
  }
  return result;
}

Structure structure(Grammar const& grammar, StructureOptions const& options = {}) {
  TokenBytes const bytes(std::vector<std::string>(std::begin(table_texts), std::end(table_texts)));
  return {grammar, TokenTrie(bytes, test::TableModel<Abilities{}>().vocabulary()), options};
}

template <class S>
Result obeying(std::uint64_t source, std::uint64_t id, S const& search, Grammar const& grammar,
               StructureOptions const& options = {}) {
  return decoded(source, id, Processed<S>(search, structure(grammar, options)));
}

Result expected(int way, std::uint64_t source, std::uint64_t id) {
  LengthLimits const length{.min = 2, .max = 12};
  BeamSearch const beam{.width = 4, .n_best = 3, .length = length};
  std::vector<Phrase> const demanded{{5, 6}, {7}}, forbidden{{3}, {4, 5}}, undone{{5, 3}, {7}};
  switch (way) {
    case 0: return decoded(source, id, Greedy{.length = length});
    case 1: return decoded(source, id, beam);
    case 2: return decoded(source, id, Sample{.temperature = 1.5f, .top_k = 4, .samples = 3, .length = length});
    case 3: return decoded(source, id, ConstrainedBeamSearch<Phrases>{.beam = beam, .constraints = Phrases(demanded)});
    case 4: return decoded(source, id, Processed{Greedy{.length = length}, Forbidden(forbidden)});
    case 5: return decoded(source, id, Processed{beam, Forbidden(forbidden)});
    case 6: return decoded(source, id, beam, {4, 4});
    case 8: return obeying(source, id, Greedy{.length = length}, Grammar::from_regex(list_regex));
    case 9: return obeying(source, id, Processed{beam, Forbidden(undone)}, Grammar::from_gbnf(nested_gbnf));
    case 10:
      return obeying(source, id, ConstrainedBeamSearch<Phrases>{.beam = beam, .constraints = Phrases(demanded)},
                     Grammar::from_gbnf(nested_gbnf));
    case 11: {
      Sample const sample{.temperature = 1.5f, .top_k = 4, .samples = 3, .length = length};
      return obeying(source, id, sample, Grammar::from_json_schema(numbers_schema));
    }
    case drawing: return decoded(source, id, StochasticBeam{.width = 3, .temperature = 1.5f, .length = length});
    case blocks_looked_up: {
      Table table;
      Speculated model(table, PromptLookup({.longest = 2}));
      Blockwise<> const blocks{.block = 5, .length = length};
      return decode(model, std::vector<Request<std::uint64_t, Blockwise<>>>{{.source = source}}, blocks).at(0);
    }
    case blocks_guessed:
    case blocks_both: return decoded(source, id, Greedy{.length = length});
    case chosen: return decoded(source, id, Processed{beam, items()});
    case blocks_chosen: return decoded(source, id, Processed{Greedy{.length = length}, items()});
    case engine: {
      auto like = presets::huggingface(4);
      like.n_best = 3, like.length = length;
      return decoded(source, id, like);
    }
    case penalised: {
      Penalties const penalties{.repetition = 1.5f, .presence = 0.25f, .window = -1, .prompt = false};
      return decoded(source, id, Processed{Greedy{.length = length}, LogitsProcessorList(penalties, NoRepeatNgram{2})});
    }
    case biased:
    case biased_once: {
      std::vector<BiasedPhrase> const phrases{{.spellings = {{3, 4}, {5}}, .whole = 2.5f},
                                              {.spellings = {{6, 3, 7}}, .per_token = 1.5f}};
      BiasOptions options;
      if (way == biased_once) options = {.matches = Matches::longest, .once = true, .lead = 1};
      Bias const bias(phrases, options);
      if (way == biased) return decoded(source, id, Processed{beam, bias});
      return decoded(source, id, Processed{Greedy{.length = length}, bias});
    }
    case stopped:
    case stopped_greedy: {
      StopOptions stops{.tokens = {{stop_tokens[0], stop_tokens[1]}, {stop_tokens[2], stop_tokens[3]}},
                        .strings = {std::begin(stop_texts), std::end(stop_texts)},
                        .bytes = TokenBytes(std::vector<std::string>(std::begin(table_texts), std::end(table_texts)))};
      if (way == stopped) return decoded(source, id, Processed{beam, StopSequences(std::move(stops))});
      stops.minimum = 5;
      return decoded(source, id, Processed{Greedy{.length = length}, StopSequences(std::move(stops))});
    }
    case fused: {
      Table table;
      std::istringstream text(words_arpa);
      auto const ngrams = read_arpa(text);
      std::vector<Word> words;
      for (auto const* word : table_words) words.push_back(ngrams.find(word).value_or(-1));
      NGramModel<> language(ngrams, table.vocabulary(), words, {.unknown = -0.5});
      Fused model(table, language, {.weight = 0.75, .word_bonus = 0.125, .words = {3, 5}});
      return decode(model, std::vector<Request<std::uint64_t, BeamSearch>>{{.source = source}}, beam).at(0);
    }
    case weighted: {
      Indicator<Structure> const lists{structure(Grammar::from_regex(list_regex))};
      return decoded(source, id,
                     ParticleSample<Indicator<Structure>>{.particles = 16,
                                                          .proposal = Proposal::product,
                                                          .resample_below = 0.75f,
                                                          .temperature = 1.5f,
                                                          .length = length,
                                                          .potential = lists});
    }
    case marked:
    case marked_by_tournament: {
      Watermark watermark{.scheme = WatermarkScheme::gumbel, .key = WatermarkKey(2026), .second = 0.25f};
      if (way == marked_by_tournament)
        watermark = {
            .scheme = WatermarkScheme::synthid, .prf = WatermarkPrf::philox, .key = WatermarkKey(2026), .width = 1};
      return decoded(source, id,
                     Sample{.temperature = 1.5f, .top_k = 4, .samples = 3, .length = length, .watermark = watermark});
    }
    case green:
    case green_greedy:
    case green_blocks: {
      GreenList list{
          {.scheme = WatermarkScheme::red_green, .key = WatermarkKey(2026), .width = 1, .gamma = 0.5f, .delta = 3}};
      if (way == green) return decoded(source, id, Processed{beam, list});
      if (way == green_greedy) list.watermark.scheme = WatermarkScheme::sbw, list.watermark.prf = WatermarkPrf::philox;
      return decoded(source, id, Processed{Greedy{.length = length}, list});
    }
    case 12:
      return obeying(source, id, beam, Grammar::from_json_schema(numbers_schema), {.certain = CertainText::longest});
    default: {
      auto gnmt = beam;
      gnmt.penalty = {.kind = LengthPenalty::Kind::gnmt, .alpha = 0.6};
      return decoded(source, id, gnmt);
    }
  }
}

}  // namespace

int differs(int way, uint64_t seed, uint64_t id, sluice_result const* result) {
  auto const want = expected(way, seed, id);
  if (std::string_view(result->failure) != name(want.failure) || result->message != want.message) return 1;
  if (result->count != want.hypotheses.size() || result->count == 0) return 1;
  auto differences = 0;
  auto const differ = [](double a, double b) { return a != b && !(std::isnan(a) && std::isnan(b)); };
  differences += differ(result->log_z, want.log_z) || differ(result->log_z_error, want.log_z_error);
  differences += (result->weights != nullptr) != (way == weighted) || std::isnan(want.log_z) != (way != weighted);
  for (std::size_t h = 0; way == weighted && h < result->count; ++h)
    differences += result->weights[h] != want.hypotheses[h].weight;
  for (std::size_t h = 0; h < result->count; ++h) {
    auto const& found = result->hypotheses[h];
    auto const& hypothesis = want.hypotheses[h];
    differences += !std::ranges::equal(std::span(found.tokens, found.count), hypothesis.tokens);
    differences += !std::ranges::equal(std::span(found.log_probs, found.count), hypothesis.log_probs);
    differences += found.log_prob != hypothesis.log_prob || found.score != hypothesis.score;
    differences += found.finished != (hypothesis.finished ? 1 : 0);
    differences += found.stop != hypothesis.stop;
    differences += found.constraints_met != hypothesis.constraints_met;
    differences += found.constraints_total != hypothesis.constraints_total;
    if (way == blocks_looked_up)
      differences += !std::ranges::equal(std::span(found.blocks, found.block_count), hypothesis.blocks);
  }
  return differences;
}

int trace_differs(int way, uint64_t seed, uint64_t id, char const* about, sluice_bytes lines, sluice_bytes page) {
  tracing.emplace().about = about;
  expected(way, seed, id);
  auto const wanted = tracing->lines.str();
  tracing.reset();
  std::istringstream from(wanted);
  std::ostringstream wanted_page;
  write_trace_page(from, wanted_page);
  return (std::string_view(lines.data, lines.count) != wanted) +
         (std::string_view(page.data, page.count) != wanted_page.str()) + (wanted.size() < 500);
}

int detection_differs(int way, sluice_token const* tokens, size_t count, uint8_t const* mask, int32_t window,
                      sluice_watermark_detection const* found) {
  WatermarkKey const one(detection_key[0]), many{std::span(detection_key)};
  Watermark const watermarks[] = {
      {.scheme = WatermarkScheme::gumbel, .key = one},
      {.scheme = WatermarkScheme::gumbel, .prf = WatermarkPrf::hmac_sha256, .key = one, .width = 2, .second = 0.25f},
      {.scheme = WatermarkScheme::synthid, .key = one, .width = 2, .depth = 7},
      {.scheme = WatermarkScheme::red_green, .key = one, .width = 2, .gamma = 0.5f, .delta = 0.75f},
      {.scheme = WatermarkScheme::sbw, .prf = WatermarkPrf::philox, .key = one, .width = 2},
      {.scheme = WatermarkScheme::synthid, .prf = WatermarkPrf::synthid_text, .key = many, .width = 2}};
  auto const want = detect_watermark(std::span(tokens, count), watermarks[way],
                                     {.mask = std::span(mask, mask == nullptr ? 0 : count), .window = window});
  auto differences = 0;
  differences += found->tokens != want.tokens || found->scored != want.scored || found->masked != want.masked;
  differences += found->repeated != want.repeated || found->score != want.score || found->expected != want.expected;
  differences += found->p_value != want.p_value || found->windows_p_value != want.windows_p_value;
  differences += want.p_value > 1e-6;  // it is marked
  if (found->window_count != want.windows.size()) return differences + 1;
  for (std::size_t i = 0; i < found->window_count; ++i) {
    auto const& window_found = found->windows[i];
    auto const& wanted = want.windows[i];
    differences += window_found.begin != wanted.begin || window_found.end != wanted.end ||
                   window_found.scored != wanted.scored || window_found.score != wanted.score ||
                   window_found.p_value != wanted.p_value;
  }
  return differences;
}

void remembered_rounds(int way, uint64_t const* sources, size_t count, int32_t forget, int32_t* rounds) {
  Table table;
  Speculated looking(table, PromptLookup({.longest = 2}));
  SuffixCache cache;
  SuffixDecoding::Options options;
  if (way > 0) options = {.shortest = 2, .factor = 1.5, .least = 0.5, .samples = 3, .own = false};
  auto const decode_all = [&](auto& model) {
    Blockwise<> const search{.block = 5, .length = {.min = 2, .max = 12}};
    Decoder decoder(model, search, Streaming{.size = 1, .refill_below = 1});
    for (std::size_t i = 0; i < count; ++i) decoder.submit({.source = sources[i], .remember = forget == 0});
    while (decoder.step()) {
    }
    for (Result result; decoder.poll(result);)
      rounds[result.id] = static_cast<std::int32_t>(result.hypotheses.at(0).blocks.size());
  };
  Speculated of_table(table, SuffixDecoding(cache, options));
  Speculated of_looking(looking, SuffixDecoding(cache, options));
  if (way == 2) decode_all(of_looking);
  else decode_all(of_table);
}

char const* expected_version() {
  static auto const text =
      std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.patch);
  return text.c_str();
}
