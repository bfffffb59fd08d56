// SPDX-License-Identifier: Apache-2.0
#include <support/catch.hpp>
#include <transformer/safetensors.hpp>
#include <transformer/weights.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::example;

namespace {

/// The vocabulary of a model whose metadata were changed: null takes an entry out.
Vocabulary vocabulary(std::map<std::string, nlohmann::json> const& changes) {
  std::ifstream stream(std::filesystem::path(SLUICE_SOURCE_DIR) /
                           "examples/apps/super_resolution/model/model.safetensors",
                       std::ios::binary);
  std::string const file{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  std::uint64_t size = 0;
  std::memcpy(&size, file.data(), sizeof size);
  auto header = nlohmann::json::parse(file.substr(sizeof size, size));
  for (auto const& [key, value] : changes)
    if (value.is_null()) header["__metadata__"].erase(key);
    else header["__metadata__"][key] = value;
  auto const text = header.dump();
  auto const begin = static_cast<std::uint64_t>(text.size());
  auto changed =
      std::string(reinterpret_cast<char const*>(&begin), sizeof begin) + text + file.substr(sizeof size + size);
  std::vector<std::byte> bytes(changed.size());
  std::memcpy(bytes.data(), changed.data(), changed.size());
  auto const weights = Weights::from(Safetensors("F", std::move(bytes)));
  CHECK(weights->end() == (weights->vocabulary.eos.empty() ? weights->vocabulary.bos : weights->vocabulary.eos[0]));
  return weights->vocabulary;
}

std::string refusal(std::map<std::string, nlohmann::json> const& changes) {
  try {
    vocabulary(changes);
  } catch (std::runtime_error const& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("metadata name bos, eos and what is never generated", "[transformer]") {
  auto const shipped = vocabulary({});
  CHECK(shipped.size == 257);
  CHECK(shipped.bos == 256);
  CHECK(shipped.eos.empty());
  CHECK(shipped.never == std::vector<Token>{256});
  auto const changed = vocabulary({{"bos", "3"}, {"eos", " 7 5"}, {"never", ""}});
  CHECK(changed.bos == 3);
  CHECK(changed.eos == std::vector<Token>{7, 5});
  CHECK(changed.never.empty());
}

TEST_CASE("where metadata name none, tokens are those of the translation model", "[transformer]") {
  auto const silent = vocabulary({{"bos", nullptr}, {"eos", nullptr}, {"never", nullptr}});
  CHECK(silent.bos == 1);
  CHECK(silent.eos == std::vector<Token>{2});
  CHECK(silent.never == std::vector<Token>{0, 1});
}

TEST_CASE("metadata that name no tokens are refused", "[transformer]") {
  auto const bad = [](std::string const& key, std::string const& value) {
    return "weights: metadata '" + key + "' = '" + value + "': must be tokens in [0, 257), with spaces between";
  };
  for (std::string const key : {"bos", "eos", "never"})
    for (std::string const value : {"x", "257", "-1", "1,2", "2.5", "3 99999999999"})
      CHECK(refusal({{key, value}}) == bad(key, value));
  CHECK(refusal({{"bos", ""}}) == "weights: metadata 'bos' names 0 tokens, must be one");
  CHECK(refusal({{"bos", "1 2"}}) == "weights: metadata 'bos' names 2 tokens, must be one");
}
