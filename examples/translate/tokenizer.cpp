// SPDX-License-Identifier: Apache-2.0
#include <text/lines.hpp>
#include <translate/tokenizer.hpp>

#include <sentencepiece_processor.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace translate {

Tokenizer::Tokenizer(std::filesystem::path const& file)
    : processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {
  // Read by us: SentencePiece itself would print what goes wrong.
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file)) throw text::InputError(file.string() + ": cannot be opened");
  std::string const bytes(std::istreambuf_iterator<char>(stream), {});
  if (bytes.empty() || !processor_->LoadFromSerializedProto(bytes).ok())
    throw text::InputError(file.string() + ": is not a model of SentencePiece");
}
Tokenizer::~Tokenizer() = default;

std::vector<sluice::Token> Tokenizer::encode(std::string_view text) const {
  std::vector<int> ids;
  auto const status = processor_->Encode({text.data(), text.size()}, &ids);
  if (!status.ok()) throw std::runtime_error("tokenizer: " + status.ToString());
  return {ids.begin(), ids.end()};
}

std::string Tokenizer::decode(std::span<sluice::Token const> tokens) const {
  std::string text;
  auto const status = processor_->Decode(std::vector<int>(tokens.begin(), tokens.end()), &text);
  if (!status.ok()) throw std::runtime_error("tokenizer: " + status.ToString());
  // A model with byte pieces can spell line ends.
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

std::int32_t Tokenizer::size() const { return processor_->GetPieceSize(); }
sluice::Token Tokenizer::eos() const { return processor_->eos_id(); }

}  // namespace translate
