// SPDX-License-Identifier: Apache-2.0
// suffix_study FACTOR [SENTENCES.de [COUNT [BATCH [PRECISION]]]]: how many rounds (calls for one sentence) suffix decoding saves, beside no
// guesses and beside prompt lookup. A Markdown table: tokens settled in a round (the mean block; 1 greedily), and in brackets
// the tokens fed for each token of an output. Every output is compared with greedy decoding. FACTOR: SuffixDecoding::factor. BATCH: how
// many sentences are translated at a time (32). PRECISION: of the model's matrices (float32, bfloat16, int8).
//
//   forms          JSON of one schema, filled with other values each time; the values are the source
//   edits          pieces of this library's headers, in each of which one name is changed; the piece is the source
//   edits again    the same pieces, another name each, after the others
//   translations   of SENTENCES by the shipped model; once more with one word of each exchanged (near repeats); once more as they were.
//                  A second table has calls of the model and CPU time of the thread, as multiples of those without guesses
//
// Forms and edits come from models that write what they are told to, so that calls can be counted without a large model.

#include <sluice/core/noise.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/heads.hpp>
#include <sluice/speculative/prompt_lookup.hpp>
#include <sluice/speculative/suffix_cache.hpp>

#include <transformer/heads.hpp>
#include <transformer/transformer.hpp>
#include <translate/guess_output.hpp>
#include <translate/tokenizer.hpp>

#include <algorithm>
#include <cctype>
#include <cpu_clock.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <shipped_model.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using sluice::Token;
using Tokens = std::vector<Token>;

constexpr std::int32_t block = 16;

/// Numbers for pieces of text: words (with a space before), up to three digits, other characters one by one. 0: end.
class Pieces {
 public:
  Tokens encode(std::string const& text) {
    Tokens tokens;
    for (std::size_t i = 0; i < text.size();) {
      auto end = i + 1;
      auto const is = [&](std::size_t at, int (*kind)(int)) {
        return at < text.size() && (kind(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
      };
      if (text[i] == ' ' && is(end, std::isalpha)) ++end;
      if (is(end - 1, std::isalpha))
        while (is(end, std::isalpha)) ++end;
      else if (is(end - 1, std::isdigit))
        while (end < i + 3 && is(end, std::isdigit)) ++end;
      tokens.push_back(
          numbers_.try_emplace(text.substr(i, end - i), static_cast<Token>(numbers_.size() + 2)).first->second);
      i = end;
    }
    return tokens;
  }
  std::int32_t size() const { return static_cast<std::int32_t>(numbers_.size()) + 2; }

 private:
  std::map<std::string, Token> numbers_;
};

/// What is asked, and what the model will write.
struct Task {
  Tokens shown{}, written{};
  operator std::span<Token const>() const { return shown; }  // what proposers may look into
};

/// A model that writes what it is told to.
class Writer {
 public:
  using Source = Task;
  static constexpr sluice::Abilities abilities{.ragged = true, .blocks = true, .roll_back = true, .trees = true};

  explicit Writer(std::int32_t size) : size_(size) {}
  sluice::Vocabulary vocabulary() const { return {.size = size_, .bos = 1, .eos = {0}}; }
  void start(std::span<Task const* const> tasks, std::span<sluice::Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) at(slots[i]) = tasks[i];
  }
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    std::ptrdiff_t lines = 0;
    for (auto const& row : rows) lines += row.lines;
    scores_.assign(static_cast<std::size_t>(lines * size_), 0);
    auto* to = scores_.data();
    for (auto const& row : rows) {
      if (row.from != row.to) at((std::max)(row.from, row.to)), at(row.to) = at(row.from);
      for (auto i = row.tokens.size() - static_cast<std::size_t>(row.lines); i < row.tokens.size(); ++i, to += size_) {
        auto const& written = at(row.to)->written;
        auto const n = static_cast<std::size_t>(row.length + row.depth(i));
        to[n < written.size() ? written[n] : 0] = 9;
      }
    }
    return sluice::scores<float>(scores_.data(), lines, size_);
  }

 private:
  Task const*& at(sluice::Slot slot) {
    if (held_.size() <= static_cast<std::size_t>(slot)) held_.resize(static_cast<std::size_t>(slot) + 1);
    return held_[static_cast<std::size_t>(slot)];
  }
  std::int32_t size_;
  std::vector<float> scores_;
  std::vector<Task const*> held_;
};

/// Calls and outputs, one sentence at a time.
struct Count {
  std::uint64_t calls = 0, tokens = 0, fed = 0, rounds = 0;
  double seconds = 0;  // of the thread's CPU
  std::vector<Tokens> outputs{};

  void add(Count const& more) {
    calls += more.calls, tokens += more.tokens, fed += more.fed, rounds += more.rounds, seconds += more.seconds;
    outputs.insert(outputs.end(), more.outputs.begin(), more.outputs.end());
  }
};
template <class M, class S, class E>
Count count(M& model, std::vector<typename M::Source> const& sources, S const& search, E const& expander,
            std::size_t batch = 1) {
  Count counted;
  sluice::Decoder decoder(model, search, sluice::Batched{.size = batch}, E(expander));
  for (auto const& source : sources) decoder.submit({.source = source});
  counted.seconds = sluice::bench::seconds([&] {
    while (decoder.step()) {
    }
  });
  counted.outputs.resize(sources.size());
  for (sluice::Result result; decoder.poll(result); result = {}) {
    if (!result.ok()) throw std::runtime_error(result.message);
    counted.outputs[static_cast<std::size_t>(result.id)] = result.hypotheses.at(0).tokens;
    counted.tokens += result.hypotheses.at(0).tokens.size();
    counted.rounds += result.hypotheses.at(0).blocks.size();
  }
  counted.calls = decoder.statistics().model_calls, counted.fed = decoder.statistics().fed;
  return counted;
}

void print(char const* name, Count const& greedy, std::vector<Count> const& found) {
  std::printf("| %s | %zu | %llu |", name, greedy.outputs.size(), static_cast<unsigned long long>(greedy.tokens));
  for (auto const& one : found) {
    if (one.outputs != greedy.outputs) throw std::logic_error(std::string(name) + ": outputs differ from greedy's");
    std::printf(" %.2f (%.2f) |", static_cast<double>(greedy.tokens) / static_cast<double>(one.rounds),
                static_cast<double>(one.fed) / static_cast<double>(one.tokens));
  }
  std::printf(" %.2f |\n", static_cast<double>(found.at(0).rounds) / static_cast<double>(found.at(1).rounds));
  std::fflush(stdout);
}

/// How many times as many calls greedy decoding needs, and in brackets how many times as much time.
void print_times(char const* name, Count const& greedy, std::vector<Count> const& found) {
  std::printf("| %s | %llu (%.1f s) |", name, static_cast<unsigned long long>(greedy.calls), greedy.seconds);
  for (auto const& one : found)
    std::printf(" %.2f (%.2f) |", static_cast<double>(greedy.calls) / static_cast<double>(one.calls),
                greedy.seconds / one.seconds);
  std::printf(" %.2f (%.2f) |\n", static_cast<double>(found.at(0).calls) / static_cast<double>(found.at(1).calls),
              found.at(0).seconds / found.at(1).seconds);
}

/// One text after another: greedily, with lookup, with a cache, with trees of the cache, with the cache and lookup inside it.
class Study {
 public:
  void written(char const* name, std::int32_t size, std::vector<Task> const& tasks, sluice::SuffixCache& cache,
               sluice::SuffixCache& trees_cache, sluice::SuffixCache& both_cache,
               sluice::SuffixDecoding::Options const& options) const {
    Writer model(size);
    sluice::LogSoftmaxTopK const expander;
    auto const greedy = count(model, tasks, sluice::Greedy{.length = length_}, expander);
    sluice::Speculated looking(model, sluice::PromptLookup());
    sluice::Speculated remembering(model, sluice::SuffixDecoding(cache, options));
    sluice::Speculated branching(model, sluice::SuffixDecoding(trees_cache, options));
    sluice::Speculated both(looking, sluice::SuffixDecoding(both_cache, options));
    print(name, greedy,
          {count(looking, tasks, chain_, expander), count(remembering, tasks, chain_, expander),
           count(branching, tasks, tree_, expander), count(both, tasks, chain_, expander)});
  }
  sluice::LengthLimits length_{.max = 4000};
  sluice::Blockwise<> chain_{.block = block, .length = length_};
  sluice::Blockwise<> tree_{.block = block, .length = length_, .branches = 4, .nodes = 2 * (block - 1)};
};

/// A form, filled by chance.
Task form(Pieces& pieces, std::uint64_t number) {
  auto const draw = [&](std::uint64_t what, std::uint64_t below) { return sluice::derive(number, what) % below; };
  char const* const names[] = {"Ada", "Grace", "Emmy", "Sofia", "Mary", "Lise", "Rosa", "Hedy", "Maria", "Katherine"};
  char const* const towns[] = {"Aachen", "Bergen", "Cork", "Delft", "Essen", "Fulda", "Ghent", "Halle"};
  char const* const reasons[] = {"holiday", "illness", "parental", "unpaid"};
  auto const date = [&](std::uint64_t what) {
    char text[24];
    std::snprintf(text, sizeof text, "2026-%02d-%02d", static_cast<int>(1 + draw(what, 12)),
                  static_cast<int>(1 + draw(what + 1, 28)));
    return std::string(text);
  };
  std::string const name = names[draw(1, 10)], town = towns[draw(2, 8)], reason = reasons[draw(3, 4)];
  auto const first = date(10), last = date(20);
  auto const one = std::to_string(draw(30, 99999)), two = std::to_string(draw(31, 99999));
  auto const half = draw(32, 2) == 0 ? "true" : "false";
  Task task;
  task.shown =
      pieces.encode(name + " " + town + " " + one + " " + first + " " + last + " " + reason + " " + two + " " + half);
  task.written = pieces.encode("{\n  \"document_type\": \"application_for_leave\",\n  \"form_version\": \"2026-03\",\n "
                               " \"employee\": {\"name\": \"" +
                               name + "\", \"town\": \"" + town + "\", \"number\": " + one + "},\n  \"first_day\": \"" +
                               first + "\",\n  \"last_day\": \"" + last + "\",\n  \"reason\": \"" + reason +
                               "\",\n  \"half_days_only\": " + half + ",\n  \"replacement_employee_number\": " + two +
                               ",\n  \"consent_of_supervisor_required\": true\n}");
  return task;
}

/// Pieces of headers, in each of which one word is changed everywhere.
std::vector<Task> edits(Pieces& pieces, std::uint64_t round) {
  std::set<std::filesystem::path> files;
  for (auto const& entry : std::filesystem::recursive_directory_iterator(SLUICE_SOURCE_DIR "/include/sluice/search"))
    if (entry.path().extension() == ".hpp") files.insert(entry.path());
  std::vector<Task> tasks;
  std::size_t number = 0;
  for (auto const& file : files) {
    if (++number % 8 != 0) continue;
    std::ifstream stream(file);
    std::string piece;
    int lines = 0;
    for (std::string line; std::getline(stream, line);) {
      piece += line + "\n";
      if (++lines % 40 != 0) continue;
      Task task{.shown = pieces.encode(piece)};
      task.written = task.shown;
      auto const changed =
          task.shown[sluice::derive(number * 100 + static_cast<std::uint64_t>(lines), round) % task.shown.size()];
      auto const by = pieces.encode("renamed_" + std::string(1, static_cast<char>('a' + round)));
      Tokens edited;
      for (auto const token : task.shown)
        if (token == changed) edited.insert(edited.end(), by.begin(), by.end());
        else edited.push_back(token);
      task.written = std::move(edited);
      tasks.push_back(std::move(task));
      piece.clear();
    }
  }
  return tasks;
}

void translations(std::string const& file, std::size_t most, sluice::SuffixDecoding::Options const& options,
                  std::size_t batch, sluice::Precision precision) {
  namespace example = sluice::example;
  std::string const folder = SLUICE_SOURCE_DIR "/examples/apps/translate/model/";
  auto const weights = example::Weights::load(folder + "model.safetensors", precision);
  sluice::DenseProjection const output(weights->projection(), weights->bias, precision);
  translate::Tokenizer const tokenizer(folder + "spm.model");
  std::vector<std::vector<std::string>> words;
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error(file + ": cannot be read");
  for (std::string line; words.size() < most && std::getline(stream, line);) {
    words.emplace_back();
    for (std::size_t i = 0; i < line.size();) {
      auto const end = std::min(line.find(' ', i), line.size());
      words.back().push_back(line.substr(i, end - i)), i = end + 1;
    }
  }
  auto const encoded = [&](bool changed) {
    std::vector<Tokens> all;
    for (std::size_t i = 0; i < words.size(); ++i) {
      auto sentence = words[i];
      auto const& other = words[(i + 1) % words.size()];
      if (changed && !sentence.empty() && !other.empty())
        sentence[sluice::derive(i, 1) % sentence.size()] = other[sluice::derive(i, 2) % other.size()];
      std::string text;
      for (auto const& word : sentence) text += (text.empty() ? "" : " ") + word;
      all.push_back(tokenizer.encode(text));
    }
    return all;
  };
  sluice::LengthLimits const length{.min = 1};
  sluice::Blockwise<> const chain{.block = 8, .length = length};
  auto const loaded =
      example::load_heads(example::Safetensors(folder + "heads.safetensors"), weights->d, sluice::Precision::int8);
  translate::GuessOutput const guess_output(
      sluice::DenseProjection(weights->projection(), weights->bias, sluice::Precision::int8));
  example::Transformer plain(weights), one(weights), two(weights), three(weights), four(weights);
  auto heads = loaded, same = loaded;
  sluice::Speculated looking(one, sluice::PromptLookup());
  sluice::SuffixCache cache(1'000'000), both_cache(1'000'000);
  sluice::Speculated remembering(two, sluice::SuffixDecoding(cache, options));
  sluice::Speculated headed(three, sluice::DraftHeads(heads, guess_output));
  sluice::Speculated inner(four, sluice::DraftHeads(same, guess_output));
  sluice::Speculated both(inner, sluice::SuffixDecoding(both_cache, options));
  std::vector<std::function<Count(std::vector<Tokens> const&)>> const methods{
      [&](auto const& sources) { return count(plain, sources, sluice::Greedy{.length = length}, output, batch); },
      [&](auto const& sources) { return count(looking, sources, chain, output, batch); },
      [&](auto const& sources) { return count(remembering, sources, chain, output, batch); },
      [&](auto const& sources) { return count(headed, sources, chain, output, batch); },
      [&](auto const& sources) { return count(both, sources, chain, output, batch); }};
  struct Row {
    char const* name;
    bool changed;
    std::vector<Count> counts{};
  };
  std::vector<Row> rows{{"translations", false}, {"one word exchanged", true}, {"again", false}};
  for (auto& [name, changed, counts] : rows) {
    counts.resize(methods.size());
    auto const sources = encoded(changed);
    // Some sentences by each method in turn, so that what else the machine does weighs on all of them.
    constexpr std::size_t some = 128;
    for (std::size_t i = 0; i < sources.size(); i += some) {
      std::vector<Tokens> const part(sources.begin() + static_cast<std::ptrdiff_t>(i),
                                     sources.begin() +
                                         static_cast<std::ptrdiff_t>((std::min)(i + some, sources.size())));
      for (std::size_t k = 0; k < methods.size(); ++k) counts[k].add(methods[k](part));
    }
    print(name, counts[0], {counts.begin() + 1, counts.end()});
  }
  std::printf(
      "\n| | calls (CPU time) without guesses | lookup | suffix cache | heads | heads and suffix cache | suffix "
      "cache to lookup |\n| --- | --- | --- | --- | --- | --- | --- |\n");
  for (auto const& row : rows) print_times(row.name, row.counts[0], {row.counts.begin() + 1, row.counts.end()});
}

sluice::Precision precision_of(std::string const& text) {
  if (text == "float32") return sluice::Precision::float32;
  if (text == "bfloat16") return sluice::Precision::bfloat16;
  if (text == "int8") return sluice::Precision::int8;
  throw std::invalid_argument("PRECISION: " + text + ": must be float32, bfloat16 or int8");
}

}  // namespace

int main(int argc, char** argv) try {
  Study const study;
  sluice::SuffixDecoding::Options const options{.factor = argc > 1 ? std::atof(argv[1]) : 1};
  std::printf("| | outputs | tokens | lookup | suffix cache | trees of it | lookup and suffix cache | suffix "
              "cache to lookup |\n"
              "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  {
    Pieces pieces;
    std::vector<Task> tasks;
    for (std::uint64_t number = 0; number < 200; ++number) tasks.push_back(form(pieces, number));
    sluice::SuffixCache cache, trees, both;
    study.written("forms", pieces.size(), tasks, cache, trees, both, options);
  }
  {
    Pieces pieces;
    auto const once = edits(pieces, 0), again = edits(pieces, 1);
    sluice::SuffixCache cache, trees, both;
    study.written("edits", pieces.size(), once, cache, trees, both, options);
    study.written("edits again", pieces.size(), again, cache, trees, both, options);
  }
  if (argc < 3) return 0;
  std::printf("\n| | outputs | tokens | lookup | suffix cache | heads | heads and suffix cache | suffix cache to "
              "lookup |\n"
              "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  auto const number = [&](int which, std::size_t otherwise) {
    return argc > which ? static_cast<std::size_t>(std::stoul(argv[which])) : otherwise;
  };
  auto const batch = number(4, 32);
  if (batch == 0) throw std::invalid_argument("BATCH: 0: must be at least 1");
  translations(argv[2], number(3, 2000), options, batch, precision_of(argc > 5 ? argv[5] : "float32"));
  return 0;
} catch (std::exception const& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}
