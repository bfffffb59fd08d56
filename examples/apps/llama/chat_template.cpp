// SPDX-License-Identifier: Apache-2.0
#include <text/lines.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <llama.h>
#include <llama/chat_template.hpp>
#include <span>
#include <utility>
#include <vector>
#ifdef SLUICE_LLAMA_JINJA
#include <ctime>
#include <jinja/caps.h>
#include <jinja/lexer.h>
#include <jinja/parser.h>
#include <jinja/runtime.h>
#include <limits>
#endif

namespace generate {

namespace {

using Json = ChatTemplate::Json;

/// What the engine says has a picture of the place in the lines behind.
std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  text.erase(0, text.find_first_not_of(' '));
  return text;
}

/// Whether it is the name of a form that is built in.
bool is_name(std::string const& source) {
  std::vector<char const*> names(static_cast<std::size_t>(std::max(0, llama_chat_builtin_templates(nullptr, 0))));
  if (!names.empty()) (void)llama_chat_builtin_templates(names.data(), names.size());
  return std::ranges::find(names, source, [](char const* name) { return std::string(name); }) != names.end();
}

}  // namespace

#ifdef SLUICE_LLAMA_JINJA

struct ChatTemplate::Jinja {
  /// \throws std::exception  for what is no Jinja
  explicit Jinja(std::string const& source)
      : program(jinja::parse_from_tokens(jinja::lexer().tokenize(source))), can(jinja::caps_get(program)) {}

  jinja::program program;
  jinja::caps can;
};

namespace {

/// A message. Looking something up in it is a checkpoint; the engine has none.
class Watched final : public jinja::value_object_t {
 public:
  explicit Watched(std::function<void()> const& checkpoint) : checkpoint_(checkpoint) {}
  jinja::value& at(jinja::value const& key, jinja::value& otherwise) override {
    checkpoint_();
    return value_object_t::at(key, otherwise);
  }
  using value_object_t::at;

 private:
  std::function<void()> const& checkpoint_;
};

jinja::value value_of(Json const& json) {
  using jinja::mk_val;
  using Kind = Json::value_t;
  switch (json.type()) {
    case Kind::boolean: return mk_val<jinja::value_bool>(json.get<bool>());
    case Kind::string: return mk_val<jinja::value_string>(json.get<std::string>());
    case Kind::number_float: return mk_val<jinja::value_float>(json.get<double>());
    case Kind::number_integer: return mk_val<jinja::value_int>(json.get<std::int64_t>());
    case Kind::number_unsigned:
      if (json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
        return mk_val<jinja::value_float>(json.get<double>());
      return mk_val<jinja::value_int>(json.get<std::int64_t>());
    case Kind::array: {
      auto list = mk_val<jinja::value_array>();
      for (auto const& one : json) list->push_back(value_of(one));
      return list;
    }
    case Kind::object: {
      auto object = mk_val<jinja::value_object>();
      for (auto const& [name, one] : json.items()) object->insert(name, value_of(one));
      return object;
    }
    default: return mk_val<jinja::value_none>();
  }
}

/// Today's, as strftime writes it.
std::string today(char const* format) {
  auto const now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::string text(64, '\0');
  text.resize(std::strftime(text.data(), text.size(), format, &parts));
  return text;
}

}  // namespace

bool ChatTemplate::describes_tools() const { return jinja_ != nullptr && jinja_->can.supports_tools; }
bool ChatTemplate::writes_calls() const { return jinja_ != nullptr && jinja_->can.supports_tool_calls; }

/// As llama-server prepares them, so that messages in OpenAI's form suit templates that expect others.
void ChatTemplate::prepare(Json& messages) const {
  auto const& can = jinja_->can;
  for (auto& one : messages) {
    if (one["role"] == "developer" && source_.find("developer") == std::string::npos) one["role"] = "system";
    if (can.supports_object_arguments && one.contains("tool_calls"))
      for (auto& call : one["tool_calls"]) {
        auto& arguments = call["function"]["arguments"];
        arguments = Json::parse(arguments.get<std::string>());
      }
  }
  if (!can.supports_system_role && !messages.empty() && messages[0]["role"] == "system") {
    if (messages.size() > 1 && messages[1]["role"] == "user") {
      auto const said = messages[0]["content"].get<std::string>();
      messages.erase(0);
      messages[0]["content"] = said + "\n\n" + messages[0]["content"].get<std::string>();
    } else {
      messages[0]["role"] = "user";
    }
  }
  if (can.supports_typed_content && !can.supports_string_content)
    for (auto& one : messages) one["content"] = Json::array({Json{{"type", "text"}, {"text", one["content"]}}});
}

std::string ChatTemplate::render(Json messages, Json const& tools, Json const& variables,
                                 std::function<void()> const& checkpoint) const {
  prepare(messages);
  jinja::context context;
  auto const list = jinja::mk_val<jinja::value_array>();
  for (auto const& one : messages) {
    auto const message = std::make_shared<Watched>(checkpoint);
    for (auto const& [name, value] : one.items()) message->insert(name, value_of(value));
    list->push_back(message);
  }
  context.set_val("messages", list);
  context.set_val("tools", value_of(tools.is_null() ? no_tools_ : tools));
  context.set_val("add_generation_prompt", value_of(true));
  context.set_val("bos_token", value_of(tokens_.bos));
  context.set_val("eos_token", value_of(tokens_.eos));
  context.set_val("date_string", value_of(today("%d %b %Y")));
  context.set_val("datetime", value_of(today("%b %d %Y")));
  for (auto const& [name, one] : variables.items()) {
    if (name == "reasoning_effort" && one.is_string())
      jinja::caps_apply_reasoning_effort(context, one.get<std::string>());  // sets what other templates call it, too
    else context.set_val(name, value_of(one));
  }
  auto const parts = jinja::runtime(context).execute(jinja_->program);
  auto text = jinja::runtime::gather_string_parts(parts)->as_string().str();
  if (tokens_.adds_bos && !tokens_.bos.empty() && text.starts_with(tokens_.bos)) text.erase(0, tokens_.bos.size());
  return text;
}

#else

struct ChatTemplate::Jinja {
  explicit Jinja(std::string const&) { throw text::InputError("this program was built without an engine of Jinja"); }
};

bool ChatTemplate::describes_tools() const { return false; }
bool ChatTemplate::writes_calls() const { return false; }
void ChatTemplate::prepare(Json&) const {}
std::string ChatTemplate::render(Json, Json const&, Json const&, std::function<void()> const&) const { return {}; }

#endif

ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

ChatTemplate::ChatTemplate(std::string source, Tokens tokens) : source_(std::move(source)), tokens_(std::move(tokens)) {
  if (source_.empty()) {
    why_ = "the model's file has no chat template";
    return;
  }
  auto const trial = Json::array({Json{{"role", "user"}, {"content", "Is this written?"}}});
  if (is_name(source_)) {
    why_ = "the template is a name";
  } else {
    try_jinja(trial);
  }
  if (way_ == Way::jinja) return;
  jinja_.reset();
  try {
    built_in(trial);
    way_ = Way::built_in;
  } catch (text::InputError const& error) {
    why_ = std::string(error.what()) + "; as Jinja: " + why_;
  }
}

/// Templates for chats with tools may want a list of none where others want nothing.
void ChatTemplate::try_jinja(Json const& trial) {
  try {
    jinja_ = std::make_unique<Jinja>(source_);
    for (auto const& none : {Json(nullptr), Json::array()}) try {
        no_tools_ = none;
        auto const text = render(trial, nullptr, Json::object(), [] {});
        if (text.find(trial[0]["content"].get_ref<std::string const&>()) != std::string::npos) {
          way_ = Way::jinja;
          return;
        }
        why_ = "what a user says is not in what the template writes";
      } catch (std::exception const& error) {
        why_ = one_line(error.what());
      }
  } catch (std::exception const& error) {
    why_ = one_line(error.what());
  }
}

std::string ChatTemplate::told() const {
  switch (way_) {
    case Way::jinja: return "rendered as Jinja";
    case Way::built_in: return "a form that llama.cpp's library has built in, without tools: " + why_;
    case Way::none: break;
  }
  return "none: " + why_;
}

std::string ChatTemplate::write(Json messages, Json const& tools, Json const& variables,
                                std::function<void()> const& checkpoint) const {
  if (way_ == Way::none) throw text::InputError(why_);
  if (way_ == Way::built_in) return built_in(messages);
  std::exception_ptr stopped;  // the engine makes texts of exceptions
  auto const watch = [&] {
    try {
      if (checkpoint) checkpoint();
    } catch (...) {
      stopped = std::current_exception();
      throw;
    }
  };
  try {
    return render(std::move(messages), tools, variables, watch);
  } catch (std::exception const& error) {
    if (stopped) std::rethrow_exception(stopped);
    throw text::InputError("the chat template does not take these messages: " + one_line(error.what()));
  }
}

std::string ChatTemplate::built_in(Json const& messages) const {
  std::vector<llama_chat_message> all;
  std::size_t size = 256;
  for (auto const& one : messages) {
    auto const &role = one["role"].get_ref<std::string const&>(),
               &content = one["content"].get_ref<std::string const&>();
    all.push_back({role.c_str(), content.c_str()}), size += 2 * (role.size() + content.size());
  }
  std::string result(size, '\0');
  auto const write = [&] {
    return llama_chat_apply_template(source_.c_str(), all.data(), all.size(), true, result.data(),
                                     static_cast<std::int32_t>(result.size()));
  };
  auto length = write();
  if (length < 0) throw text::InputError("the model's chat template is none of those that llama.cpp's library knows");
  if (static_cast<std::size_t>(length) > result.size())
    result.resize(static_cast<std::size_t>(length)), length = write();
  result.resize(static_cast<std::size_t>(length));
  return result;
}

}  // namespace generate
