// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/server.hpp>
#include <sluice/schedule/streaming.hpp>

#include <serve_http/translation_job.hpp>
#include <serve_http/translator.hpp>
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

class Translator final : public Backend {
 public:
  explicit Translator(TranslatorOptions const& options)
      : options_(options), models_({options.model}, options.weights), language_(models_.tokenizer()) {
    for (std::size_t i = 0; i < options.threads; ++i) desks_.push_back(std::make_unique<Desk>(models_, options));
  }

  std::string const& name() const override { return options_.name; }
  std::size_t size() const override { return options_.size * options_.threads; }

  std::unique_ptr<Job> prepare(Ask const& ask, std::shared_ptr<Settings const> settings) const override {
    return std::make_unique<TranslationJob>(
        ask, std::dynamic_pointer_cast<TranslationSettings const>(std::move(settings)), language_);
  }
  std::shared_ptr<Settings const> settings(Completion const& completion, Fields& fields,
                                           Bounds const& bounds) const override {
    return std::make_shared<TranslationSettings const>(completion_settings(completion, fields, bounds));
  }

  std::optional<Ticket> submit(Job& job, sluice::Delivery delivery) override {
    auto const& one = dynamic_cast<TranslationJob const&>(job);
    if (one.source.empty()) {  // nothing to translate, as in translate
      delivery.done({});
      return Ticket{desks_.size(), 0};
    }
    std::size_t desk = 0;
    for (std::size_t i = 1; i < desks_.size(); ++i)
      if (desks_[i]->server.open() < desks_[desk]->server.open()) desk = i;
    auto const id = desks_[desk]->server.submit(
        {.source = one.source, .prefix = one.prefix, .search = one.search, .seed = one.seed}, std::move(delivery));
    return id ? std::optional(Ticket{desk, *id}) : std::nullopt;
  }
  void cancel(Ticket ticket) override {
    if (ticket.first < desks_.size()) desks_[ticket.first]->server.cancel(ticket.second);
  }
  sluice::Statistics statistics() const override {
    sluice::Statistics sum;
    for (auto const& desk : desks_) sum += desk->server.statistics();
    return sum;
  }

 private:
  TranslatorOptions options_;
  translate::Models models_;
  Language language_;
  std::vector<std::unique_ptr<Desk>> desks_;
};

}  // namespace

std::unique_ptr<Backend> make_translator(TranslatorOptions const& options) {
  return std::make_unique<Translator>(options);
}

}  // namespace serve
