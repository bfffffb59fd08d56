// SPDX-License-Identifier: Apache-2.0
/// \file
/// The examples' model, loaded by CTranslate2, and the results of CTranslate2's own translation.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <ctranslate2/conversion.hpp>
#include <ctranslate2/models/sequence_to_sequence.h>
#include <ctranslate2/utils.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace sluice::test {

/// A folder that is deleted at the end.
class Folder {
 public:
  explicit Folder(std::string const& name)
      : path_(std::filesystem::temp_directory_path() / (name + "." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(Folder const&) = delete;
  Folder& operator=(Folder const&) = delete;
  std::filesystem::path const& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Token 7 is called "t7", since only the numbers matter here.
inline std::vector<std::string> ctranslate2_pieces() {
  std::vector<std::string> pieces{"<pad>", "<s>", "</s>", "<unk>"};
  while (pieces.size() < 8000) pieces.push_back("t" + std::to_string(pieces.size()));
  return pieces;
}

/// The shipped weights, computed as `type`.
inline std::shared_ptr<ctranslate2::models::Model const>
load_ctranslate2(ctranslate2::ComputeType type = ctranslate2::ComputeType::FLOAT32) {
  ctranslate2::set_num_threads(1);
  Folder const folder("sluice.ctranslate2");
  example::Safetensors const weights(
      std::filesystem::path(SLUICE_SOURCE_DIR "/examples/apps/translate/model/model.safetensors"));
  example::convert_to_ctranslate2(weights, ctranslate2_pieces(), folder.path());
  return ctranslate2::models::Model::load(folder.path().string(), ctranslate2::Device::CPU, 0, type);
}
/// The same, loaded once.
inline std::shared_ptr<ctranslate2::models::Model const> const& shared_ctranslate2() {
  static auto const model = load_ctranslate2();
  return model;
}

/// The sources of tests/references/sample.json: 60 German sentences.
inline std::vector<std::vector<Token>> sample_sources() {
  auto const file = nlohmann::json::parse(std::ifstream(SLUICE_SOURCE_DIR "/tests/references/sample.json"));
  std::vector<std::vector<Token>> sources;
  for (auto const& sentence : file.at("sentences")) sources.push_back(sentence.at("source").get<std::vector<Token>>());
  return sources;
}

inline std::vector<std::string> piece_names(std::vector<Token> const& tokens) {
  static auto const pieces = ctranslate2_pieces();
  std::vector<std::string> names;
  for (auto const token : tokens) names.push_back(pieces.at(static_cast<std::size_t>(token)));
  return names;
}

/// CTranslate2's own decoding, with all sentences in one batch.
inline std::vector<ctranslate2::TranslationResult>
own_translations(ctranslate2::models::Model const& model, std::vector<std::vector<Token>> const& sources,
                 ctranslate2::TranslationOptions options, std::vector<std::vector<Token>> const& prefixes = {}) {
  std::vector<std::vector<std::string>> names, begins;
  for (auto const& source : sources) names.push_back(piece_names(source));
  for (auto const& prefix : prefixes) begins.push_back(piece_names(prefix));
  options.return_scores = true;
  return model.as_sequence_to_sequence()->translate(names, begins, options);
}

}  // namespace sluice::test
