// SPDX-License-Identifier: Apache-2.0
/// \file
/// A chat's messages as a prompt.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace generate {

/// A chat template: Jinja, rendered by llama.cpp's engine of it where the program was built with that. Without, and where the engine
/// does not render it, llama.cpp's library has forms built in, one of which it may be. Any thread may call.
class ChatTemplate {
 public:
  using Json = nlohmann::ordered_json;
  enum class Way : std::uint8_t { none, built_in, jinja };
  struct Tokens {
    std::string bos{}, eos{};  ///< their names
    bool adds_bos = false;     ///< the tokenizer puts bos in front of each text
  };

  /// \param source  as a model's file has it: Jinja, or the name of a form; empty: there is none
  ChatTemplate(std::string source, Tokens tokens);
  ChatTemplate(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  std::string const& source() const { return source_; }
  Way way() const { return way_; }
  /// For a person: how messages are written and, if not as Jinja, why.
  std::string told() const;

  /// Whether it describes tools; otherwise that must stand in the messages.
  bool describes_tools() const;
  /// Whether it writes calls of tools and their results; otherwise these must be messages with nothing but role and content.
  bool writes_calls() const;

  /// Messages and the beginning of the answer. Names of control tokens in it are those tokens.
  /// \param messages   in OpenAI's form, contents as strings
  /// \param tools      in OpenAI's form; null: none
  /// \param variables  object: others that the template is given, by name. Without effect on forms that are built in
  /// \param checkpoint  called now and then while a template runs, which may take long for thousands of messages; may throw
  /// \throws text::InputError  for messages that the template does not take, and for all if the way is `none`
  std::string write(Json messages, Json const& tools, Json const& variables,
                    std::function<void()> const& checkpoint = {}) const;

 private:
  struct Jinja;

  void try_jinja(Json const& trial);
  void prepare(Json& messages) const;
  std::string render(Json messages, Json const& tools, Json const& variables,
                     std::function<void()> const& checkpoint) const;
  std::string built_in(Json const& messages) const;

  std::string source_;
  Tokens tokens_;
  Way way_ = Way::none;
  std::string why_{};  // not Jinja
  std::unique_ptr<Jinja> jinja_;
  Json no_tools_ = nullptr;  // what the template is given in their place
};

}  // namespace generate
