// SPDX-License-Identifier: Apache-2.0
/// \file
/// What is loaded: a model of llama.cpp, a context, and a source of guesses.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/engine/llama.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/model/fused.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/ngram/ngram_model.hpp>

#include <filesystem>
#include <llama/options.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace generate {

struct Free {
  void operator()(llama_model* model) const { llama_model_free(model); }
  void operator()(llama_context* context) const { llama_free(context); }
};

/// A model and a context of it, with as many sequences and cells as the options ask for.
class Loaded {
 public:
  /// \throws text::InputError  if llama.cpp does not take the file
  Loaded(std::filesystem::path const& file, Options const& options, std::int32_t leaves);
  sluice::Llama& model() { return *adapter_; }
  llama_model const* weights() const { return model_.get(); }

 private:
  std::unique_ptr<llama_model, Free> model_;
  std::unique_ptr<llama_context, Free> context_;
  std::optional<sluice::Llama> adapter_;
};

/// One type for all combinations, so that every search is compiled once.
using Model = sluice::AnyModel<std::monostate, sluice::Scores<float>>;

/// A message of a chat.
struct Message {
  std::string role, content;
};

class Engine {
 public:
  explicit Engine(Options const& options);
  /// These messages and the beginning of the answer in the model's own chat template, as llama.cpp's library writes it. Names of
  /// control tokens in it are those tokens.
  /// \throws text::InputError  for a model without a template, or with one that llama.cpp's library does not know
  std::string chat(std::span<Message const> messages) const;
  /// As the model's file has it; empty: it has none.
  std::string_view chat_template() const;
  Model& model() { return *model_; }
  sluice::LlamaTokenizer const& tokenizer() const { return loaded_->model().tokenizer(); }

 private:
  void guess(Options const& options);
  void fuse(Options const& options);

  std::unique_ptr<Loaded> loaded_, draft_;
  std::optional<sluice::Restarting<sluice::Llama>> restarting_;
  std::optional<Model> rolling_;  // can roll back
  std::optional<Model> alone_;    // without the language model
  std::optional<sluice::WordModel<>> language_;
  std::optional<sluice::Fused<Model, sluice::WordModel<>>> fused_;
  std::optional<Model> model_;
};

}  // namespace generate
