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
#include <llama/chat_template.hpp>
#include <llama/options.hpp>
#include <memory>
#include <optional>
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

class Engine {
 public:
  explicit Engine(Options const& options);
  /// The model's own, unless the options have another.
  /// \param tools  the one for chats with tools, if the model's file has one of its own for them
  ChatTemplate const& chat_template(bool tools = false) const {
    return tools && tools_template_ ? *tools_template_ : *template_;
  }
  Model& model() { return *model_; }
  sluice::LlamaTokenizer const& tokenizer() const { return loaded_->model().tokenizer(); }

 private:
  void guess(Options const& options);
  void fuse(Options const& options);
  void read_templates(std::filesystem::path const& file);

  std::unique_ptr<Loaded> loaded_, draft_;
  std::optional<sluice::Restarting<sluice::Llama>> restarting_;
  std::optional<Model> rolling_;  // can roll back
  std::optional<Model> alone_;    // without the language model
  std::optional<sluice::WordModel<>> language_;
  std::optional<sluice::Fused<Model, sluice::WordModel<>>> fused_;
  std::optional<Model> model_;
  std::optional<ChatTemplate> template_, tools_template_;
};

}  // namespace generate
