// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/server.hpp>
#include <sluice/speculative/suffix_cache.hpp>

#include <text/lines.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <http/work.hpp>
#include <llama/engine.hpp>
#include <optional>
#include <serve_llama/continuation_job.hpp>
#include <serve_llama/continuer.hpp>
#include <serve_llama/tool_prompt.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace serve {

namespace {

/// Prompts share a common beginning (prefix caching) if the model can.
sluice::Intake intake(generate::Options const& options, generate::Engine& engine) {
  auto const share = options.share >= 0 ? options.share : options.context / 2;
  return {.prompt_chunk = options.chunk, .shared_tokens = engine.model().abilities().roll_back ? share : 0};
}

/// llama.cpp's own.
sluice::SequenceBreakers breakers(sluice::LlamaTokenizer const& tokenizer) {
  static std::vector<std::string> const texts{"\n", ":", "\"", "*"};
  return sluice::SequenceBreakers::from_text(tokenizer.token_bytes(), texts,
                                             [&](std::string_view rest) { return tokenizer.tokens(rest, false); });
}

/// The model, with what it remembers.
class Guessing {
 public:
  /// \throws text::InputError, std::invalid_argument  for a model that cannot verify guesses, and another model's file
  Guessing(generate::Model& model, RememberOptions const& options) : file_(options.file.string()), model_(&model) {
    if (!options.on()) return;
    if (auto const can = model.abilities(); !can.roll_back || !can.blocks)
      throw text::InputError("--remember: this model cannot take back tokens, so that it verifies no guesses");
    cache_.emplace(options.tokens);
    try {
      if (!file_.empty() && std::filesystem::exists(file_)) cache_->load(file_);
      else save();  // says now if it cannot be written
    } catch (std::runtime_error const& error) {
      throw text::InputError(error.what());
    }
    guessing_.emplace(model, sluice::SuffixDecoding(*cache_)), wrapped_.emplace(&*guessing_), model_ = &*wrapped_;
  }
  generate::Model& model() { return *model_; }
  sluice::SuffixCache const* cache() const { return cache_ ? &*cache_ : nullptr; }
  void save() {
    if (cache_ && !file_.empty()) cache_->save(file_);
  }

 private:
  std::string file_;
  generate::Model* model_;
  std::optional<sluice::SuffixCache> cache_;
  std::optional<sluice::Speculated<generate::Model, sluice::SuffixDecoding>> guessing_;
  std::optional<generate::Model> wrapped_;
};

using Names = std::vector<std::pair<std::string, sluice::Token>>;

/// Names of the tokens that add no bytes to a text, but neither end an output nor are left out: <|tool_call|> and the like.
Names control_names(sluice::LlamaTokenizer const& tokenizer) {
  Names names;
  auto const& vocabulary = tokenizer.vocabulary();
  for (sluice::Token token = 0; token < vocabulary.size; ++token) {
    auto const never = std::ranges::binary_search(vocabulary.never, token);
    if (never || vocabulary.ends(token) || !tokenizer.bytes(token).empty()) continue;
    if (auto name = tokenizer.bytes(token, true); !name.empty()) names.emplace_back(std::move(name), token);
  }
  return names;
}
/// `</think>`, which is a token if the tokenizer has one for it, with bytes or without. Its name is added then.
sluice::Reasoning reasoning(sluice::LlamaTokenizer const& tokenizer, std::int32_t budget, Names& names) {
  sluice::Reasoning one{.budget = budget, .tokens = false};
  for (sluice::Token token = 0; token < tokenizer.vocabulary().size && !one.tokens; ++token) {
    one.tokens = tokenizer.bytes(token, true) == one.end;
    if (std::pair const name(one.end, token); one.tokens && std::ranges::find(names, name) == names.end())
      names.push_back(name);
  }
  if (!one.tokens && budget >= 0)
    throw text::InputError(
        "--reasoning-budget: this tokenizer has no token </think>, behind which tokens could be counted");
  return one;
}
/// As TokenTrie::spelling(): bytes, and names of tokens without.
sluice::TokenBytes spellings(sluice::LlamaTokenizer const& tokenizer, Names const& names) {
  std::vector<std::string> all;
  all.reserve(static_cast<std::size_t>(tokenizer.vocabulary().size));
  for (sluice::Token token = 0; token < tokenizer.vocabulary().size; ++token) all.push_back(tokenizer.bytes(token));
  for (auto const& [name, token] : names) all[static_cast<std::size_t>(token)] = name;
  return sluice::TokenBytes(all);
}

/// What cannot fit the context is not rendered: each message has a token at least.
/// \throws BadField
void check_room(Chat const& chat, std::int32_t context) {
  auto const most = static_cast<std::size_t>(context);
  std::size_t bytes = 0;
  for (auto const& one : chat.messages) bytes += one.content.size();
  if (chat.messages.size() > most || bytes > most * bytes_of_cell)
    throw BadField("messages",
                   "messages has " + std::to_string(chat.messages.size()) + " entries of " + std::to_string(bytes) +
                       " bytes, more than the model has room for",
                   413);
}

class Continuer final : public Backend {
 public:
  explicit Continuer(ContinuerOptions const& options)
      : options_(options),
        engine_(options.engine),
        names_(control_names(engine_.tokenizer())),
        reasoning_(reasoning(engine_.tokenizer(), options.reasoning_budget, names_)),
        texts_{engine_.tokenizer(),
               engine_.tokenizer().token_bytes(),
               spellings(engine_.tokenizer(), names_),
               options.engine.special,
               breakers(engine_.tokenizer()),
               bytes_of_cell * static_cast<std::size_t>(options.engine.context)},
        format_(options.tool_format.value_or(guess_tool_format(engine_.chat_template(true).source()))),
        grammars_(sluice::TokenTrie(texts_.bytes, engine_.model().vocabulary(), names_)),
        guessing_(engine_.model(), options.offer.remember),
        server_(guessing_.model(), Continuation{}, sluice::Streaming{.size = options.size, .refill_below = 1},
                {.queue = options.queue + options.size,
                 .full = sluice::ServerOptions::Full::refuse,
                 .intake = intake(options.engine, engine_)}) {
    std::fprintf(stderr, "serve_llama: chat template: %s\n", engine_.chat_template().told().c_str());
  }

  std::string const& name() const override { return options_.name; }
  std::size_t size() const override { return options_.size; }

  std::shared_ptr<Settings const> settings(Completion const& completion, Fields& fields,
                                           Bounds const& bounds) const override {
    return std::make_shared<ContinuationSettings const>(continuation_settings(
        completion, fields, bounds, texts_.bytes.size(), options_.offer, options_.json, format_, reasoning_));
  }
  std::unique_ptr<Preparation> prepare(Task const& task) const override {
    return std::make_unique<ContinuationPreparation>(task, texts_, grammars_);
  }
  std::int32_t token_count() const override { return texts_.bytes.size(); }
  std::string tool_format() const override {
    return std::string(sluice::detail::tool_layout(static_cast<std::size_t>(format_)).name);
  }
  bool reasons() const override { return options_.reasons; }
  bool reasons(std::string const& prompt) const override {
    auto const end = prompt.find_last_not_of(" \n") + 1;
    return options_.reasons && !std::string_view(prompt).substr(0, end).ends_with(reasoning_.end);
  }
  std::string chat(Chat const& chat) const override {
    auto const& pattern = engine_.chat_template(chat.tools.any());
    check_room(chat, options_.engine.context);
    auto variables = chat.variables;
    if (chat.effort == "none") variables["enable_thinking"] = false;
    else if (chat.effort) variables["reasoning_effort"] = *chat.effort;
    if (!variables.empty() && pattern.way() != generate::ChatTemplate::Way::jinja) {
      std::string const field = chat.variables.empty() ? "reasoning_effort" : "chat_template_kwargs";
      throw BadField(field, field + " has no effect: the chat template is " + pattern.told());
    }
    try {
      auto const tools =
          pattern.describes_tools() && chat.tools.any() ? Chat::Variables::parse(chat.tools.json) : nullptr;
      return pattern.write(prompt_messages(chat, pattern, format_), tools, variables, Work::checkpoint);
    } catch (text::InputError const& error) {
      auto const memory = std::string_view(error.what()).find("takes too much memory") != std::string_view::npos;
      throw BadField("messages", error.what(), memory ? 413 : 400);  // the engine of templates rethrows it as text
    }
  }
  std::optional<Ticket> submit(Job& job, sluice::Delivery delivery, bool) override {
    auto const& one = dynamic_cast<ContinuationJob const&>(job);
    if (!one.asks()) {
      delivery.done({});
      return Ticket{1, 0};
    }
    auto const id =
        server_.submit({.prompt = one.prompt, .search = one.search, .seed = one.seed, .remember = one.remember()},
                       std::move(delivery));
    return id ? std::optional(Ticket{0, *id}) : std::nullopt;
  }
  void cancel(Ticket ticket) override {
    if (ticket.first == 0) server_.cancel(ticket.second);
  }
  Pieces pieces(std::string const& text) const override {
    texts_.check_length("text", text);
    Pieces pieces;
    for (auto const token : texts_.tokenizer.tokens(text, false))
      pieces.emplace_back(token, texts_.tokenizer.bytes(token));
    return pieces;
  }
  std::optional<Remembered> remembered() const override {
    auto const* const cache = guessing_.cache();
    if (cache == nullptr) return std::nullopt;
    return Remembered{cache->texts(), cache->tokens(), cache->bytes()};
  }
  void save() override { guessing_.save(); }
  sluice::Statistics statistics() const override { return server_.statistics(); }

 private:
  ContinuerOptions options_;
  generate::Engine engine_;
  Names names_;
  sluice::Reasoning reasoning_;
  Texts texts_;
  sluice::ToolFormat format_;
  mutable Grammars grammars_;
  Guessing guessing_;
  sluice::Server<generate::Model, Continuation> server_;
};

}  // namespace

std::unique_ptr<Backend> make_continuer(ContinuerOptions const& options) {
  return std::make_unique<Continuer>(options);
}

}  // namespace serve
