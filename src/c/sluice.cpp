// SPDX-License-Identifier: Apache-2.0
// The C interface: include/sluice/c/sluice.h over the C++ library. Grammars are in grammar.cpp, catalogues in
// catalogue.cpp, CTC in ctc.cpp, transducers in transducer.cpp, language models in ngrams.cpp, suffix caches in suffix.cpp, pages of traces in trace.cpp, watermarks in
// watermark.cpp.

#include <sluice/c/sluice.h>
#include <sluice/core/result.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/detail/run_to_end.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/server.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/version.hpp>

#include "handles.hpp"
#include "model.hpp"
#include "options.hpp"
#include "passing.hpp"
#include "tracing.hpp"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace sluice::c;
using sluice::require, sluice::Token;
using Model = sluice::AnyModel<void const*>;

template <class S>
using Request = sluice::Request<void const*, S>;
template <class S>
using Decoder = sluice::Decoder<Model, S, sluice::Streaming, sluice::LogSoftmaxTopK, EachTrace>;
template <class S>
using Server = sluice::Server<Model, S, sluice::Streaming, sluice::LogSoftmaxTopK, EachTrace>;
template <class>
struct ServersOf;
template <class... S>
struct ServersOf<std::variant<S...>> {
  using Type = std::variant<std::unique_ptr<Server<S>>...>;
};
using AnyServer = ServersOf<AnySearch>::Type;

}  // namespace

struct sluice_results {
  std::vector<sluice::Result> results;
  std::vector<View> views;
  std::vector<sluice_result> list;
};

struct sluice_server {
  sluice::TokenBytes bytes;
  sluice::LogitsProcessorList processors;  // of requests without a search of their own
  std::shared_ptr<Traces> traces;
  AnyServer server;
};

namespace {

template <class S>
Request<S> make_request(sluice_request const& request, sluice::LogitsProcessorList const& usual,
                        sluice::TokenBytes const& bytes) {
  require(request.forget == 0 || request.forget == 1, "forget", request.forget, "must be 0 or 1");
  require(request.reserved == 0, "reserved", request.reserved, "must be 0");
  Request<S> made{.source = request.source,
                  .prompt = copy(request.prompt, request.prompt_count, "prompt"),
                  .prefix = copy(request.prefix, request.prefix_count, "prefix"),
                  .traced = request.trace != nullptr,
                  .remember = request.forget == 0};
  if (request.seed != nullptr) made.seed = *request.seed;
  if (request.search != nullptr) {
    auto search = request.search->options.search();
    require(std::holds_alternative<S>(search), "search", "of another kind", "must be of the kind that the call has");
    made.search = std::get<S>(std::move(search));
    made.processors = request.search->options.processors(bytes);
  } else {
    made.processors = usual;
  }
  return made;
}

/// Element `index` of an array of requests, whose distance is the size that the first one says.
sluice_request const& request_of(sluice_request const* requests, std::size_t index) {
  auto const* const bytes = reinterpret_cast<char const*>(requests) + index * requests->size;
  auto const& request = *reinterpret_cast<sluice_request const*>(bytes);
  require(index == 0 || request.size == requests->size, "requests[" + std::to_string(index) + "].size", request.size,
          "must be that of requests[0], " + std::to_string(requests->size));
  return request;
}

/// As decode(), with traces.
template <class S>
std::vector<sluice::Result> decoded(Model& model, std::vector<Request<S>> requests, S const& search,
                                    sluice::Streaming const& schedule, EachTrace trace) {
  Decoder<S> decoder(model, search, schedule, {}, std::move(trace));
  for (auto& request : requests) decoder.submit(std::move(request));
  std::vector<sluice::Result> results;
  sluice::detail::run_to_end(decoder.loop(), sluice::ResultOrder::input,
                             [&](sluice::Result&& result) { results.push_back(std::move(result)); });
  return results;
}

sluice::Streaming schedule(std::size_t batch) { return {.size = batch == 0 ? 64 : batch, .refill_below = 1}; }

}  // namespace

extern "C" {

char const* sluice_last_error(void) { return last_error().c_str(); }

char const* sluice_version(void) {
#define SLUICE_TEXT_OF(x) #x
#define SLUICE_TEXT(x) SLUICE_TEXT_OF(x)
  return SLUICE_TEXT(SLUICE_VERSION_MAJOR) "." SLUICE_TEXT(SLUICE_VERSION_MINOR) "." SLUICE_TEXT(SLUICE_VERSION_PATCH);
}

int32_t sluice_abi_version(void) { return SLUICE_ABI_VERSION; }

sluice_status sluice_model_create(sluice_model_functions const* functions, sluice_model** model) {
  return guarded([&] {
    auto const table = taken(not_null(functions, "functions"));
    auto& made = not_null(model, "model");
    auto held = std::make_unique<LookingModel>(table);
    auto its_model = held->model();
    made = new sluice_model{std::move(held), std::move(its_model), table.destroy, table.user};
    return SLUICE_OK;
  });
}
void sluice_model_free(sluice_model* model) {
  if (model != nullptr && model->destroy != nullptr) model->destroy(model->user);
  delete model;
}

sluice_status sluice_search_create(char const* kind, sluice_search** search) {
  return guarded([&] {
    std::string_view const wanted = &not_null(kind, "kind");
    auto& made = not_null(search, "search");
    if (wanted == "greedy") made = new sluice_search{{.plain = sluice::Greedy{}}};
    else if (wanted == "beam") made = new sluice_search{{.plain = sluice::BeamSearch{}}};
    else if (wanted == "diverse") made = new sluice_search{{.plain = sluice::DiverseBeamSearch{}}};
    else if (wanted == "sample") made = new sluice_search{{.plain = sluice::Sample{}}};
    else if (wanted == "stochastic") made = new sluice_search{{.plain = sluice::StochasticBeam{}}};
    else if (wanted == "blockwise") made = new sluice_search{{.plain = sluice::Blockwise<>{}}};
    else if (wanted == "particles") made = new sluice_search{{.plain = Particles{}}};
    else if (wanted == "ctc") made = new sluice_search{{.plain = sluice::CtcBeamSearch<>{}}};
    else if (wanted == "transducer") made = new sluice_search{{.plain = sluice::TransducerBeam<>{}}};
    else if (wanted == "transducer_greedy") made = new sluice_search{{.plain = sluice::TransducerGreedy<>{}}};
    else
      require(false, "kind", wanted,
              "must be greedy, beam, diverse, sample, stochastic, blockwise, particles, ctc, transducer or "
              "transducer_greedy");
    return SLUICE_OK;
  });
}
void sluice_search_free(sluice_search* search) { delete search; }

sluice_status sluice_search_set(sluice_search* search, char const* name, double value) {
  return guarded([&] {
    auto& options = not_null(search, "search").options;
    Setter setter(&not_null(name, "name"), value);
    std::visit([&](auto& plain) { set(plain, setter); }, options.plain);
    set(options.penalties, setter), set(options.no_repeat_ngram, setter);
    setter("stop_minimum", options.stop_minimum);
    require(setter.found(), "name", name, "is no option of this kind of search");
    return SLUICE_OK;
  });
}
sluice_status sluice_search_demand(sluice_search* search, sluice_token const* tokens, size_t count) {
  return guarded([&] {
    auto& options = not_null(search, "search").options;
    require(std::holds_alternative<sluice::BeamSearch>(options.plain), "search", "of another kind",
            "only a beam takes phrases that must come");
    options.demanded.push_back(copy(tokens, count, "tokens"));
    return SLUICE_OK;
  });
}
sluice_status sluice_search_forbid(sluice_search* search, sluice_token const* tokens, size_t count) {
  return guarded([&] {
    not_null(search, "search").options.forbidden.push_back(copy(tokens, count, "tokens"));
    return SLUICE_OK;
  });
}

sluice_status sluice_search_stop(sluice_search* search, sluice_token const* tokens, size_t count) {
  return guarded([&] {
    auto& options = not_null(search, "search").options;
    auto phrase = copy(tokens, count, "tokens");
    require(!phrase.empty(), "tokens", "[]", "must not be empty");
    options.stop_tokens.push_back(std::move(phrase));
    return SLUICE_OK;
  });
}
sluice_status sluice_search_stop_text(sluice_search* search, char const* bytes, size_t count) {
  return guarded([&] {
    auto& options = not_null(search, "search").options;
    require(count > 0, "bytes", "\"\"", "must not be empty");
    options.stop_strings.emplace_back(&not_null(bytes, "bytes"), count);
    return SLUICE_OK;
  });
}
sluice_status sluice_search_text(sluice_search const* search, sluice_model const* model, sluice_hypothesis const* found,
                                 int32_t include_stop, char* text, size_t room, size_t* count) {
  return guarded([&] {
    auto const& options = not_null(search, "search").options;
    auto const& its = not_null(model, "model");
    auto const& from = not_null(found, "found");
    auto& size = not_null(count, "count");
    require(text != nullptr || room == 0, "text", "null", "must have the room that it says");
    require(include_stop == 0 || include_stop == 1, "include_stop", include_stop, "must be 0 or 1");
    require(!its.bytes.empty(), "model", "without bytes", "needs sluice_model_set_bytes before outputs are texts");
    sluice::Hypothesis hypothesis;
    hypothesis.tokens = copy(from.tokens, from.count, "found.tokens"), hypothesis.stop = from.stop;
    auto const made = options.stops(its.bytes).text(hypothesis, include_stop == 1 ? sluice::IncludeStop::yes
                                                                                  : sluice::IncludeStop::no);
    if (room > 0) made.copy(text, room);
    size = made.size();
    return SLUICE_OK;
  });
}

sluice_status sluice_bias_create(sluice_biased_phrase const* phrases, size_t count, sluice_bias_options const* options,
                                 sluice_bias** bias) {
  return guarded([&] {
    auto& made = not_null(bias, "bias");
    sluice::require(phrases != nullptr || count == 0, "phrases", "null", "must be as many as it says");
    auto const chosen = options == nullptr ? sluice_bias_options_init() : taken(*options);
    sluice::require(chosen.matches >= 0 && chosen.matches <= 2, "sluice_bias_options.matches", chosen.matches,
                    "must be a number from 0 to 2");
    sluice::require(chosen.once == 0 || chosen.once == 1, "sluice_bias_options.once", chosen.once, "must be 0 or 1");
    sluice::require(chosen.reserved == 0, "sluice_bias_options.reserved", chosen.reserved, "must be 0");
    std::vector<sluice::BiasedPhrase> all(count);
    for (std::size_t i = 0; i < count; ++i) {
      auto const& phrase = phrases[i];
      auto const name = "phrases[" + std::to_string(i) + "]";
      sluice::require(phrase.lengths != nullptr || phrase.spellings == 0, name + ".lengths", "null",
                      "must be as many as it says");
      auto const* tokens = phrase.tokens;
      for (std::size_t n = 0; n < phrase.spellings; tokens += phrase.lengths[n++])
        all[i].spellings.push_back(copy(tokens, phrase.lengths[n], name + ".tokens"));
      sluice::require(phrase.per_token == 0 || phrase.per_token == 1, name + ".per_token", phrase.per_token,
                      "must be 0 or 1");
      sluice::require(std::isfinite(phrase.boost), name + ".boost", phrase.boost, "must be a number");
      (phrase.per_token == 1 ? all[i].per_token : all[i].whole) = phrase.boost;
    }
    made = new sluice_bias{sluice::Bias(
        all, {.matches = static_cast<sluice::Matches>(chosen.matches), .once = chosen.once == 1, .lead = chosen.lead})};
    return SLUICE_OK;
  });
}
void sluice_bias_free(sluice_bias* bias) { delete bias; }

sluice_status sluice_search_prefer(sluice_search* search, sluice_bias const* bias) {
  return guarded([&] {
    not_null(search, "search").options.bias = bias == nullptr ? sluice::Bias() : bias->bias;
    return SLUICE_OK;
  });
}

sluice_status sluice_search_process(sluice_search* search, sluice_process process, void* user) {
  return guarded([&] {
    auto& its = not_null(search, "search");
    sluice::require(process != nullptr, "process", "null", "must be a function");
    its.options.callbacks.push_back({process, user});
    return SLUICE_OK;
  });
}

sluice_status sluice_search_stop_when(sluice_search* search, sluice_over over, void* user) {
  return guarded([&] {
    auto& its = not_null(search, "search");
    sluice::require(over != nullptr, "over", "null", "must be a function");
    its.options.criteria.push_back({over, user});
    return SLUICE_OK;
  });
}

sluice_status sluice_decode(sluice_model* model, sluice_search const* search, sluice_request const* requests,
                            size_t count, size_t batch, sluice_results** results) {
  return guarded([&] {
    auto& its = not_null(model, "model");
    auto& out = not_null(results, "results");
    require(requests != nullptr || count == 0, "requests", "null", "must be as many as it says");
    auto made = std::make_unique<sluice_results>();
    auto const& options = not_null(search, "search").options;
    auto const processors = options.processors(its.bytes);
    processors.check();
    std::visit(
        [&]<class S>(S const& its_search) {
          std::vector<Request<S>> wanted;
          std::vector<TakenTrace> traces(count);
          for (std::size_t i = 0; i < count; ++i) {
            auto const request = taken(request_of(requests, i));
            wanted.push_back(make_request<S>(request, processors, its.bytes));
            traces[i] = TakenTrace(request.trace);
          }
          made->results = decoded<S>(its.model, std::move(wanted), its_search, schedule(batch),
                                     EachTrace([&](std::uint64_t id) { return traces.at(id).begin(id, its.bytes); }));
        },
        options.search());
    made->views.resize(made->results.size());
    for (std::size_t i = 0; i < made->results.size(); ++i) made->list.push_back(made->views[i].of(made->results[i]));
    out = made.release();
    return SLUICE_OK;
  });
}
sluice_result const* sluice_results_at(sluice_results const* results, size_t index) {
  return results != nullptr && index < results->list.size() ? &results->list[index] : nullptr;
}
size_t sluice_results_count(sluice_results const* results) { return results == nullptr ? 0 : results->list.size(); }
void sluice_results_free(sluice_results* results) { delete results; }

sluice_status sluice_server_create(sluice_model* model, sluice_search const* search, size_t batch, size_t queue,
                                   sluice_server** server) {
  return guarded([&] {
    auto& its = not_null(model, "model");
    auto& out = not_null(server, "server");
    auto const& chosen = not_null(search, "search").options;
    auto const processors = chosen.processors(its.bytes);
    processors.check();
    std::visit(
        [&]<class S>(S const& its_search) {
          sluice::ServerOptions options;
          if (queue > 0) options.queue = queue;
          auto const traces = std::make_shared<Traces>();
          EachTrace each([traces, bytes = its.bytes](std::uint64_t id) { return traces->begin(id, bytes); });
          auto made = std::make_unique<Server<S>>(its.model, its_search, schedule(batch), options,
                                                  sluice::LogSoftmaxTopK(), std::move(each));
          out = new sluice_server{its.bytes, processors, traces, std::move(made)};
        },
        chosen.search());
    return SLUICE_OK;
  });
}

sluice_status sluice_server_submit(sluice_server* server, sluice_request const* request,
                                   sluice_delivery const* delivery, uint64_t* id) {
  return guarded([&] {
    auto const its = taken(not_null(delivery, "delivery"));
    require(its.done != nullptr, "done", "null", "must be a function");
    require(its.seconds >= 0, "seconds", its.seconds, "must be a number >= 0");
    auto const what = taken(not_null(request, "request"));
    auto& served = not_null(server, "server");
    auto const trace = served.traces->take(what.trace);
    sluice::Delivery to{.done = [its, trace, traces = served.traces](sluice::Result const& result) {
      if (trace != nullptr) traces->end(result.id, *trace);
      View view;
      auto const seen = view.of(result);
      its.done(its.user, &seen);
    }};
    if (its.delta != nullptr)
      to.delta = [its](std::uint64_t number, std::span<Token const> tokens) {
        its.delta(its.user, number, tokens.data(), tokens.size());
      };
    if (its.seconds > 0 && its.seconds < 1e9)
      to.deadline = sluice::ServerClock::now() + std::chrono::duration_cast<sluice::ServerClock::duration>(
                                                     std::chrono::duration<double>(its.seconds));
    auto const number = std::visit(
        [&]<class S>(std::unique_ptr<Server<S>> const& held) {
          return held->submit(make_request<S>(what, served.processors, served.bytes), std::move(to));
        },
        served.server);
    if (number && trace != nullptr) served.traces->know(*number, trace);
    if (!number) return failed(SLUICE_REFUSED, "sluice: the server's queue is full, or it has closed");
    if (id != nullptr) *id = *number;
    return sluice_status{SLUICE_OK};
  });
}
sluice_status sluice_server_cancel(sluice_server* server, uint64_t id) {
  return guarded([&] {
    std::visit([&](auto const& its) { its->cancel(id); }, not_null(server, "server").server);
    return SLUICE_OK;
  });
}
sluice_status sluice_server_close(sluice_server* server) {
  return guarded([&] {
    std::visit([&](auto const& its) { its->close(); }, not_null(server, "server").server);
    return SLUICE_OK;
  });
}
sluice_status sluice_server_drain(sluice_server* server) {
  return guarded([&] {
    std::visit([&](auto const& its) { its->drain(); }, not_null(server, "server").server);
    return SLUICE_OK;
  });
}
void sluice_server_free(sluice_server* server) { delete server; }

}  // extern "C"
