// SPDX-License-Identifier: Apache-2.0
// The cost of a catalogue: building it, its bytes, a set of allowed tokens, and the time of a beam step without the
// model and the output layer. For comparison: a hash map from prefixes to allowed next tokens and a mask over all
// tokens, the usual prefix_allowed_tokens_fn with Hugging Face generate.
//
//   sluice.bench.catalogue [items] [width]      no width: 50, 128 and 512
#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/catalogue_beam.hpp>
#include <sluice/catalogue/catalogue_builder.hpp>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/output/shortlist_projection.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using sluice::Item, sluice::Token;

double seconds(auto const& work) {
  auto const begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double at(std::vector<double>& times, double part) {
  if (times.empty()) return 0;
  std::ranges::sort(times);
  return times[std::min(times.size() - 1, static_cast<std::size_t>(part * static_cast<double>(times.size())))];
}

/// Tokens 0 to 2 are padding, bos and eos; then 256 codes for each of four places, as in semantic identifiers.
constexpr std::int32_t codes = 256, places = 4;

struct Kind {
  std::string name;
  std::int32_t vocabulary;
  std::vector<std::vector<Token>> sequences;
};

/// Identifiers of four codes, uniformly distributed.
Kind identifiers(std::size_t count) {
  std::mt19937_64 random(1);
  Kind kind{"4 codes of 256", 3 + codes * places, {}};
  for (std::size_t i = 0; i < count; ++i) {
    auto& one = kind.sequences.emplace_back();
    for (Token place = 0; place < places; ++place)
      one.push_back(3 + place * codes + static_cast<Token>(random() % codes));
  }
  return kind;
}

/// Titles: two to twelve tokens of 32,000, low ones more often.
Kind titles(std::size_t count) {
  std::mt19937_64 random(2);
  Kind kind{"titles of 2 to 12 tokens", 32'000, {}};
  for (std::size_t i = 0; i < count; ++i) {
    auto& one = kind.sequences.emplace_back();
    for (auto n = 2 + random() % 11; n > 0; --n) {
      auto const u = static_cast<double>(random() >> 11) * 0x1p-53;
      one.push_back(3 + static_cast<Token>(u * u * u * 31'990));
    }
  }
  return kind;
}

sluice::Catalogue build(Kind const& kind) {
  sluice::CatalogueBuilder builder(sluice::Duplicates::count);
  sluice::Catalogue catalogue;
  auto const adding = seconds([&] {
    for (auto const& tokens : kind.sequences) builder.add(tokens);
  });
  auto const building = seconds([&] { catalogue = builder.build(); });
  auto const name = "sluice-bench." + std::to_string(::getpid()) + ".cat";
  auto const path = (std::filesystem::temp_directory_path() / name).string();
  {
    std::ofstream stream(path, std::ios::binary);
    catalogue.write(stream);
  }
  sluice::Catalogue mapped;
  auto const opening = seconds([&] { mapped = sluice::Catalogue::open(path, sluice::CatalogueCheck::head); });
  auto const checking = seconds([&] { mapped = sluice::Catalogue::open(path); });
  std::filesystem::remove(path);
  std::size_t tokens = 0;
  for (auto const& one : kind.sequences) tokens += one.size();
  std::printf(
      "%s: %d items (%lld drawn twice), %lld nodes; added in %.2f s, sorted and built in %.2f s; %.2f bytes an item, "
      "%.2f bits a token; opened in %.2f ms, checked in %.0f ms\n",
      kind.name.c_str(), catalogue.size(), static_cast<long long>(builder.duplicates()),
      static_cast<long long>(catalogue.nodes()), adding, building,
      static_cast<double>(catalogue.bytes().size()) / catalogue.size(),
      8 * static_cast<double>(catalogue.bytes().size()) / static_cast<double>(tokens), 1000 * opening, 1000 * checking);
  return mapped;
}

/// The usual user code: a map from each prefix to its next tokens; fills a mask for each line.
struct PrefixMap {
  struct Hash {
    std::size_t operator()(std::vector<Token> const& tokens) const {
      std::uint64_t hash = 0xCBF29CE484222325u;
      for (auto const token : tokens) hash = (hash ^ static_cast<std::uint64_t>(token)) * 0x100000001B3u;
      return hash;
    }
  };
  std::unordered_map<std::vector<Token>, std::vector<Token>, Hash> follow;

  void add(std::vector<Token> const& tokens, Token eos) {
    std::vector<Token> beginning;
    for (std::size_t n = 0; n <= tokens.size(); ++n) {
      auto const token = n < tokens.size() ? tokens[n] : eos;
      auto& all = follow[beginning];
      if (std::ranges::find(all, token) == all.end()) all.push_back(token);
      if (n < tokens.size()) beginning.push_back(token);
    }
  }
};

/// Times sets of allowed tokens, for random prefixes of random items, in microseconds.
void measure_sets(Kind const& kind, sluice::Catalogue const& catalogue, sluice::SwitchedOff const& off) {
  std::mt19937_64 random(3);
  sluice::Vocabulary const vocabulary{.size = kind.vocabulary, .bos = 1, .eos = {2}};
  sluice::InCatalogue const items(catalogue), fewer(catalogue, off);
  std::vector<double> next, set, without, listing, mapped;
  PrefixMap map;
  auto const some = std::min<std::size_t>(kind.sequences.size(), 200'000);  // for the map only, which is large
  auto const mapping = seconds([&] {
    for (std::size_t i = 0; i < some; ++i) map.add(kind.sequences[i], 2);
  });
  std::vector<float> line(static_cast<std::size_t>(kind.vocabulary));
  double sum = 0;
  std::vector<Token> tokens_of;
  std::vector<Item> first, last;
  for (int round = 0; round < 20'000; ++round) {
    auto const& tokens = kind.sequences[random() % some];
    auto const length = random() % tokens.size();
    std::vector<Token> const beginning(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(length));
    sluice::InCatalogue::State state{.node = catalogue.find_beginning(beginning), .vocabulary = &vocabulary};
    set.push_back(1e6 * seconds([&] { sum += items.may_follow(state, 0)->contains(tokens[length]) ? 1 : 0; }));
    without.push_back(1e6 * seconds([&] { sum += fewer.may_follow(state, 0)->contains(tokens[length]) ? 1 : 0; }));
    listing.push_back(1e6 * seconds([&] {
                        tokens_of.clear(), first.clear(), last.clear();
                        catalogue.list_children(state.node, tokens_of, first, last);
                      }));
    next.push_back(1e6 * seconds([&] { sum += catalogue.child(state.node, tokens[length]).first; }));
    mapped.push_back(1e6 * seconds([&] {
                       std::ranges::fill(line, -std::numeric_limits<float>::infinity());
                       for (auto const token : map.follow.at(beginning)) line[static_cast<std::size_t>(token)] = 0;
                     }));
    sum += static_cast<double>(line[static_cast<std::size_t>(tokens[length])]);
  }
  std::printf(
      "microseconds, median and 99th percentile: children listed %.2f %.2f; set of %d tokens %.2f %.2f; with items "
      "switched off %.2f %.2f; next token %.2f %.2f; map and mask (of %zu items, filled in %.1f s) %.2f %.2f\n",
      at(listing, 0.5), at(listing, 0.99), kind.vocabulary, at(set, 0.5), at(set, 0.99), at(without, 0.5),
      at(without, 0.99), at(next, 0.5), at(next, 0.99), some, mapping, at(mapped, 0.5), at(mapped, 0.99));
  if (sum < 1) std::printf("nothing was allowed\n");
}

/// Takes scores from a table, in order, and measures the time for that.
class Model {
 public:
  using Source = int;
  explicit Model(std::int32_t vocabulary) : size_(vocabulary), table_(static_cast<std::size_t>(size_) * (512 + 64)) {
    std::mt19937_64 random(3);
    std::normal_distribution<float> draw(0, 2);
    for (auto& x : table_) x = draw(random);
  }
  sluice::Vocabulary vocabulary() const { return {.size = size_, .bos = 1, .eos = {2}, .never = {0, 1}}; }
  static void start(std::span<int const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    auto const first = static_cast<std::size_t>(rows[0].length * 11 % 64) * static_cast<std::size_t>(size_);
    return sluice::scores(table_.data() + first, std::ssize(rows), size_);
  }

 private:
  std::int32_t size_;
  std::vector<float> table_;
};

/// An expander that measures its time.
class Timed {
 public:
  sluice::Expansion expand(sluice::Scores<float> const& scores, std::span<sluice::Query const> queries,
                           std::span<sluice::Group const> groups) {
    sluice::Expansion answer;
    taken += seconds([&] { answer = output_.expand(scores, queries, groups); });
    return answer;
  }
  double taken = 0;

 private:
  sluice::LogSoftmaxTopK output_;
};

/// Milliseconds of each step spent outside the model and the output layer.
template <class S>
void measure_steps(char const* name, Model& model, S const& search, sluice::Catalogue const& catalogue,
                   sluice::SwitchedOff const& off, int rounds) {
  sluice::Decoder decoder(model, search, sluice::Batched{}, Timed{});
  std::vector<std::vector<double>> steps;
  std::size_t outputs = 0, illegal = 0;
  std::size_t count = 0;
  double layer = 0;
  for (int round = 0; round < rounds; ++round) {
    decoder.submit({.source = round});
    for (std::size_t step = 0;; ++step) {
      auto const before = decoder.expander().taken;
      auto more = true;
      auto const whole = seconds([&] { more = decoder.step(); });
      if (!more && decoder.expander().taken == before) break;
      if (round == 0) continue;  // the first round allocates memory
      if (steps.size() <= step) steps.resize(step + 1);
      auto const output = decoder.expander().taken - before;
      layer += output;
      steps[step].push_back(1000 * (whole - output)), ++count;
    }
    sluice::Result result;
    while (decoder.poll(result)) {
      if (!result.ok()) throw std::runtime_error(result.message);
      for (auto const& h : result.hypotheses) {
        ++outputs;
        auto const item = catalogue.item_of(h.tokens);
        illegal += !h.finished || !item || off.contains(*item) ? 1 : 0;
      }
    }
  }
  double sum = 0;
  for (auto& step : steps) sum += at(step, 0.5);
  std::printf("| %s | %.3f | %.3f |", name, sum / static_cast<double>(steps.size()),
              1000 * layer / static_cast<double>(count));
  for (auto& step : steps) std::printf(" %.3f", at(step, 0.5));
  std::printf(" | %zu of %zu |\n", illegal, outputs);
  std::fflush(stdout);
}

void measure_beams(Kind const& kind, sluice::Catalogue const& catalogue, sluice::SwitchedOff const& off,
                   std::span<std::int32_t const> widths) {
  Model model(kind.vocabulary);
  for (auto const width : widths) {
    sluice::BeamSearch const beam{.width = width, .n_best = width, .length = {.max = catalogue.longest() + 1}};
    std::printf("\nwidth %d: milliseconds a step beside model and output layer\n\n| | mean | output layer | each step, "
                "median | "
                "illegal |\n| --- | --- | --- | --- | --- |\n",
                width);
    sluice::InCatalogue const items(catalogue), fewer(catalogue, off);
    auto const none = sluice::SwitchedOff{};
    using sluice::Among, sluice::CatalogueBeam;
    measure_steps("CatalogueBeam, over all tokens", model, CatalogueBeam{beam, items}, catalogue, none, 40);
    measure_steps("over the children", model, CatalogueBeam{beam, items, Among::children}, catalogue, none, 40);
    measure_steps("with items switched off", model, CatalogueBeam{beam, fewer}, catalogue, off, 40);
    auto under = beam;
    under.stage = sluice::Stage::before_softmax;
    measure_steps("BeamSearch under the rule", model, sluice::Processed<sluice::BeamSearch>{under, items}, catalogue,
                  none, 6);
    // Without a catalogue nothing is forbidden: the time of the selection only.
    measure_steps("BeamSearch without a catalogue", model, beam, catalogue, none, 6);
  }
}

/// The product itself: all logits, or only the children's.
void measure_layer(Kind const& kind, sluice::Catalogue const& catalogue, std::int32_t width) {
  constexpr std::ptrdiff_t d = 256;
  auto const size = static_cast<std::size_t>(kind.vocabulary) * d;
  std::mt19937_64 random(5);
  std::normal_distribution<float> draw(0, 0.1f);
  std::vector<float> weights(size), hidden(static_cast<std::size_t>(width) * d);
  for (auto& x : weights) x = draw(random);
  for (auto& x : hidden) x = draw(random);
  sluice::MatrixView<float const> const view{weights.data(), kind.vocabulary, d, d};
  sluice::DenseProjection dense(view);
  sluice::ProbeProjection few(view, {}, dense.weights());
  for (std::int32_t depth = 1; depth < std::min(catalogue.longest(), 4); ++depth) {
    std::vector<std::vector<Token>> children(static_cast<std::size_t>(width));
    std::vector<sluice::Query> plain, asked;
    std::size_t count = 0;
    for (auto& tokens : children) {
      auto const item = catalogue.tokens(static_cast<Item>(random() % static_cast<std::uint64_t>(catalogue.size())));
      auto const node =
          catalogue.find_beginning(std::span(item).first(std::min(item.size() - 1, static_cast<std::size_t>(depth))));
      catalogue.for_each_child(node, [&](Token token, Item, Item) { tokens.push_back(token); });
      plain.push_back({.best = 1}), asked.push_back({.best = 0, .probes = tokens, .normalise = false});
      count += tokens.size();
    }
    std::vector<sluice::Group> const group{{.lines = width}};
    auto const rows = sluice::hidden<float>(hidden.data(), width, d);
    (void)few.expand(rows, asked, group);
    auto const all = seconds([&] { (void)dense.expand(rows, plain, group); });
    auto const some = seconds([&] {
      for (int i = 0; i < 5; ++i) (void)few.expand(rows, asked, group);
    });
    std::printf(
        "output layer of %d x %td, %d lines behind %d tokens, %zu children: all logits %.2f ms, theirs %.2f ms\n",
        kind.vocabulary, d, width, depth, count, 1000 * all, 1000 * some / 5);
  }
}

void measure(Kind const& kind, std::span<std::int32_t const> widths) {
  auto const catalogue = build(kind);
  std::mt19937_64 random(4);
  auto const draw = [&](std::size_t count) {
    std::vector<Item> items(count);
    for (auto& item : items) item = static_cast<Item>(random() % static_cast<std::uint64_t>(catalogue.size()));
    return items;
  };
  auto const sold_out = draw(static_cast<std::size_t>(catalogue.size()) / 10);
  auto const seen = draw(std::min<std::size_t>(1000, static_cast<std::size_t>(catalogue.size()) / 10));
  sluice::SwitchedOff shared, off;
  auto const sharing = seconds([&] { shared = sluice::SwitchedOff(catalogue, sold_out); });
  auto const making = seconds([&] { off = sluice::SwitchedOff(catalogue, seen, shared); });
  std::printf("switched off: %zu items shared by all in %.2f ms, %zu of a request on top in %.3f ms\n", sold_out.size(),
              1000 * sharing, seen.size(), 1000 * making);
  measure_sets(kind, catalogue, off);
  measure_layer(kind, catalogue, widths.back());
  measure_beams(kind, catalogue, off, widths);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) try {
  auto const items = argc > 1 ? static_cast<std::size_t>(std::atoll(argv[1])) : std::size_t{1'000'000};
  std::vector<std::int32_t> widths{50, 128, 512};
  if (argc > 2) widths = {std::clamp(std::atoi(argv[2]), 1, 512)};
  measure(identifiers(items), widths);
  measure(titles(items), widths);
  return 0;
} catch (std::exception const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
