// SPDX-License-Identifier: Apache-2.0
#include <sluice/speculative/acceptance.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <text/lines.hpp>
#include <text/ngrams.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <llama/engine.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace generate {

namespace {

/// llama.cpp's first error message.
std::string& complaint() {
  static std::string text;
  return text;
}
void report(ggml_log_level level, char const* text, void*) {
  if (level == GGML_LOG_LEVEL_ERROR && complaint().empty()) complaint() = text;
}
/// \throws text::InputError  with that
[[noreturn]] void refuse(std::string const& what) {
  auto why = complaint();
  while (why.ends_with('\n')) why.pop_back();
  throw text::InputError(what + (why.empty() ? "" : ": " + why));
}

void load_backends(Options const& options) {
  llama_log_set(report, nullptr);
  llama_backend_init();
  if (!options.backends.empty()) ggml_backend_load_all_from_path(options.backends.c_str());
  else if (ggml_backend_dev_count() == 0) ggml_backend_load_all();
  if (ggml_backend_dev_count() == 0) ggml_backend_load_all_from_path(SLUICE_LLAMA_BACKENDS);
  if (ggml_backend_dev_count() == 0) refuse("--backends: no backend was found");
}

}  // namespace

Loaded::Loaded(std::filesystem::path const& file, Options const& options, std::int32_t leaves) {
  auto loading = llama_model_default_params();
  if (options.gpu_layers >= 0) loading.n_gpu_layers = options.gpu_layers;
  if (options.exact || options.no_repack) loading.use_extra_bufts = false;
  model_.reset(llama_model_load_from_file(file.c_str(), loading));
  if (model_ == nullptr) refuse(file.string() + ": llama.cpp cannot load it");

  auto params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(options.context);
  params.n_batch = static_cast<std::uint32_t>(options.batch);
  params.n_seq_max = static_cast<std::uint32_t>(options.parallel * options.slot_count() + leaves);
  params.kv_unified = !options.split;
  params.n_threads =
      options.threads > 0 ? options.threads : static_cast<std::int32_t>(std::thread::hardware_concurrency());
  params.n_threads_batch = params.n_threads;
  if (options.exact) {
    params.type_k = params.type_v = GGML_TYPE_F32;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  }
  std::string type(16, '\0');
  if (options.exact && !options.split && params.n_seq_max > 1 &&
      llama_model_meta_val_str(model_.get(), "general.file_type", type.data(), type.size()) > 0 &&
      type.c_str()[0] != '0')
    std::fprintf(stderr,
                 "--exact: the weights are not float32, so that outputs depend on the batch even so: add --split\n");
  context_.reset(llama_init_from_model(model_.get(), params));
  if (context_ == nullptr) refuse(file.string() + ": llama.cpp cannot create such a context for it");
  adapter_.emplace(context_.get(),
                   sluice::LlamaOptions{.eos = options.ends, .leaves = leaves, .swap_after = options.swap_after});
}

Engine::Engine(Options const& options) {
  load_backends(options);
  loaded_ = std::make_unique<Loaded>(options.model, options, options.leaves());
  if (options.blockwise()) guess(options);
  else model_.emplace(&loaded_->model());
  if (!options.language_model.empty()) fuse(options);
  read_templates(options.chat_template);
}

void Engine::read_templates(std::filesystem::path const& file) {
  auto const* const vocabulary = llama_model_get_vocab(loaded_->weights());
  auto const name = [&](llama_token token) {
    return token == LLAMA_TOKEN_NULL ? std::string() : tokenizer().bytes(token, true);
  };
  ChatTemplate::Tokens const tokens{name(llama_vocab_bos(vocabulary)), name(llama_vocab_eos(vocabulary)),
                                    llama_vocab_get_add_bos(vocabulary)};
  if (!file.empty()) {
    template_.emplace(text::read_text(file), tokens);
    if (template_->way() == ChatTemplate::Way::none)
      throw text::InputError("--chat-template-file: " + file.string() + ": " + template_->told());
    return;
  }
  auto const own = [&](char const* variant) {
    auto const* const found = llama_model_chat_template(loaded_->weights(), variant);
    return std::string(found == nullptr ? "" : found);
  };
  template_.emplace(own(nullptr), tokens);
  if (ChatTemplate other(own("tool_use"), tokens); other.way() == ChatTemplate::Way::jinja)
    tools_template_.emplace(std::move(other));
}

/// N-grams of words beside the model, over the text of its tokens.
void Engine::fuse(Options const& options) {
  auto const bytes = tokenizer().token_bytes();
  alone_.emplace(std::move(*model_));
  auto const& vocabulary = alone_->vocabulary();
  language_.emplace(text::load_ngrams(options.language_model), vocabulary, bytes);
  sluice::FusedOptions added{.weight = options.language_weight,
                             .word_bonus = options.word_bonus,
                             .normalise = options.normalise || options.search == SearchName::sample};
  for (sluice::Token token = 0; token < vocabulary.size; ++token)
    if (bytes.bytes(token).starts_with(' ')) added.words.push_back(token);
  fused_.emplace(*alone_, *language_, std::move(added));
  model_.emplace(&*fused_);
}

void Engine::guess(Options const& options) {
  if (!loaded_->model().abilities().roll_back) {
    restarting_.emplace(loaded_->model());
    rolling_.emplace(&*restarting_);
  } else {
    rolling_.emplace(&loaded_->model());
  }
  if (options.lookup) {
    model_.emplace(sluice::Speculated(*rolling_, sluice::PromptLookup()));
    return;
  }
  draft_ = std::make_unique<Loaded>(options.draft, options, 0);
  auto& draft = draft_->model();
  sluice::acceptance::Sampling const sampling{{.temperature = options.temperature,
                                               .top_k = options.top_k,
                                               .top_p = options.top_p,
                                               .min_p = options.min_p,
                                               .typical = options.typical}};
  if (options.search == SearchName::sample)
    model_.emplace(sluice::Speculated(*rolling_, sluice::DraftModel(draft, sluice::LogSoftmaxTopK{}, sampling)));
  else model_.emplace(sluice::Speculated(*rolling_, sluice::DraftModel(draft)));
}

}  // namespace generate
