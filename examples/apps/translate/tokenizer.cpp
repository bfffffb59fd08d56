// SPDX-License-Identifier: Apache-2.0
#include <text/lines.hpp>
#include <translate/tokenizer.hpp>

#include <sentencepiece_processor.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace translate {

namespace {

// SentencePiece begins every text as a word. A text that continues another one is put after a private-use character,
// which is in no piece and so joins none. The pieces of that character are dropped.
constexpr std::string_view anchor = "\xEE\x80\x80";

}  // namespace

Tokenizer::Tokenizer(std::filesystem::path const& file)
    : processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {
  // Read by us: SentencePiece itself would print what goes wrong.
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file)) throw text::InputError(file.string() + ": cannot be opened");
  std::string const bytes(std::istreambuf_iterator<char>(stream), {});
  if (bytes.empty() || !processor_->LoadFromSerializedProto(bytes).ok())
    throw text::InputError(file.string() + ": is not a model of SentencePiece");
  anchor_ = encode(anchor);
}
Tokenizer::~Tokenizer() = default;

std::vector<sluice::Token> Tokenizer::encode(std::string_view text) const {
  std::vector<int> ids;
  auto const status = processor_->Encode({text.data(), text.size()}, &ids);
  if (!status.ok()) throw std::runtime_error("tokenizer: " + status.ToString());
  return {ids.begin(), ids.end()};
}

std::vector<sluice::Token> Tokenizer::encode_inside(std::string_view text) const {
  auto tokens = encode(std::string(anchor).append(text));
  auto const same = std::ranges::mismatch(tokens, anchor_).in1 - tokens.begin();
  tokens.erase(tokens.begin(), tokens.begin() + same);
  return tokens;
}

std::string Tokenizer::normal(std::string_view text) const {
  // By pieces, not by token ids: an unknown character has a piece, but no id.
  std::vector<std::string> pieces;
  std::string out;
  auto status = processor_->Encode({text.data(), text.size()}, &pieces);
  if (status.ok()) status = processor_->Decode(pieces, &out);
  if (!status.ok()) throw std::runtime_error("tokenizer: " + status.ToString());
  return out;
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
std::string const& Tokenizer::piece(sluice::Token token) const { return processor_->IdToPiece(token); }
std::string Tokenizer::text(sluice::Token token) const {
  if (processor_->IsControl(token) || processor_->IsUnused(token)) return {};
  if (processor_->IsUnknown(token)) return " \xE2\x81\x87 ";  // as decode() writes it
  auto text = piece(token);
  if (processor_->IsByte(token)) {  // <0x41>
    auto const byte = static_cast<char>(std::stoi(text.substr(3, 2), nullptr, 16));
    return {byte == '\n' || byte == '\r' ? ' ' : byte};
  }
  constexpr std::string_view mark = "\xE2\x96\x81";
  for (std::size_t at = 0; (at = text.find(mark, at)) != text.npos;) text.replace(at, mark.size(), 1, ' ');
  return text;
}
sluice::TokenBytes Tokenizer::bytes() const {
  std::vector<std::string> all;
  for (sluice::Token token = 0; token < size(); ++token) {
    all.push_back(text(token));
    // decode() keeps a space that is spelt by its byte even where it takes away the first one.
    if (processor_->IsUnknown(token) || (processor_->IsByte(token) && all.back() == " ")) all.back().clear();
  }
  return sluice::TokenBytes(all);
}
sluice::Token Tokenizer::eos() const { return processor_->eos_id(); }
sluice::Token Tokenizer::unk() const { return processor_->unk_id(); }

}  // namespace translate
