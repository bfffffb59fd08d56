// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/server.hpp>
#include <sluice/decode/trace_file.hpp>
#include <sluice/decode/trace_page.hpp>

#include <http/memory.hpp>
#include <optional>
#include <serve_http/translation_job.hpp>
#include <serve_http/translator.hpp>
#include <sstream>
#include <system_error>
#include <utility>

namespace serve {

namespace {

/// A model and the thread that steps it.
struct Desk {
  Desk(translate::Models& models, TranslatorOptions const& options)
      : model(models.make()),
        server(model, Search{}, sluice::Streaming{.size = options.size, .refill_below = 1},
               {.queue = options.queue + options.size * options.threads, .full = sluice::ServerOptions::Full::refuse},
               models.output()) {}

  translate::Model model;
  sluice::Server<translate::Model, Search, sluice::Streaming, translate::Output> server;
};

class Translator final : public TracingBackend {
 public:
  explicit Translator(TranslatorOptions const& options)
      : options_(options), models_({options.model}, options.weights), language_(models_.tokenizer()) {
    auto const& file = options.weights.remember;
    if (std::error_code ignored; !file.empty() && !std::filesystem::exists(file, ignored))
      models_.save();  // says now if it cannot be written
    for (std::size_t i = 0; i <= options.threads; ++i) desks_.push_back(std::make_unique<Desk>(models_, options));
  }

  std::string const& name() const override { return options_.name; }
  std::size_t size() const override { return options_.size * options_.threads; }
  /// Whose steps take little longer than those of one row.
  std::size_t express_rows() const override { return 24; }

  std::unique_ptr<Preparation> prepare(Task const& task) const override {
    return std::make_unique<TranslationPreparation>(task, language_);
  }
  std::shared_ptr<Settings const> settings(Completion const& completion, Fields& fields,
                                           Bounds const& bounds) const override {
    return std::make_shared<TranslationSettings const>(completion_settings(completion, fields, bounds, options_.offer));
  }

  std::optional<Ticket> submit(Job& job, sluice::Delivery delivery, bool express) override {
    auto const& one = dynamic_cast<TranslationJob const&>(job);
    if (one.source.empty()) {  // nothing to translate, as in translate
      delivery.done({});
      return Ticket{desks_.size(), 0};
    }
    std::size_t desk = express ? options_.threads : 0;
    for (std::size_t i = 1; !express && i < options_.threads; ++i)
      if (desks_[i]->server.open() < desks_[desk]->server.open()) desk = i;
    auto const id = desks_[desk]->server.submit({.source = one.source,
                                                 .prefix = one.prefix,
                                                 .search = one.search,
                                                 .seed = one.seed,
                                                 .remember = one.remember()},
                                                std::move(delivery));
    return id ? std::optional(Ticket{desk, *id}) : std::nullopt;
  }
  void cancel(Ticket ticket) override {
    if (ticket.first < desks_.size()) desks_[ticket.first]->server.cancel(ticket.second);
  }
  Pieces pieces(std::string const& text) const override {
    Pieces pieces;
    for (auto const token : language_.tokenizer.encode(text)) {
      auto piece = language_.tokenizer.text(token);
      if (pieces.empty() && piece.starts_with(' ')) piece.erase(0, 1);  // which is not in the text
      pieces.emplace_back(token, std::move(piece));
    }
    return pieces;
  }
  std::optional<Remembered> remembered() const override {
    auto const* const kept = models_.remembered();
    if (kept == nullptr) return std::nullopt;
    return Remembered{kept->texts(), kept->tokens(), kept->bytes()};
  }
  void save() override { models_.save(); }
  sluice::Statistics statistics() const override {
    sluice::Statistics sum;
    for (auto const& desk : desks_) sum += desk->server.statistics();
    return sum;
  }

  std::string trace(Job const& job, std::string const& about,
                    std::function<void(std::size_t bytes)> const& between) override {
    if (!traced_) {
      Account::Counting const uncounted(nullptr);  // it is kept
      traced_.emplace(models_.make());
    }
    auto const& one = dynamic_cast<TranslationJob const&>(job);
    std::ostringstream out;
    sluice::TracePage around(out);
    if (!one.source.empty()) {
      auto const text_of = [&](sluice::Token token) { return language_.tokenizer.text(token); };
      sluice::Decoder decoder(*traced_, Search{}, sluice::Streaming{.size = 1}, models_.output(),
                              sluice::TraceFile(out, text_of));
      auto const id = decoder.submit({.source = one.source,
                                      .prefix = one.prefix,
                                      .search = one.search,
                                      .seed = one.seed,
                                      .remember = false});  // its output is there already
      decoder.trace().describe(id, about);
      while (decoder.step()) between(static_cast<std::size_t>(out.tellp()));
    }
    around.finish();
    return out.str();
  }

 private:
  TranslatorOptions options_;
  translate::Models models_;
  Language language_;
  std::vector<std::unique_ptr<Desk>> desks_;  // the last one for small requests
  std::optional<translate::Model> traced_;    // for traces
};

}  // namespace

std::unique_ptr<TracingBackend> make_translator(TranslatorOptions const& options) {
  return std::make_unique<Translator>(options);
}

}  // namespace serve
