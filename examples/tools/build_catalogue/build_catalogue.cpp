// SPDX-License-Identifier: Apache-2.0
// build_catalogue: items as text or tokens in, a catalogue out; and what a catalogue holds.

#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/catalogue_builder.hpp>
#include <sluice/core/types.hpp>

#include <text/lines.hpp>
#include <text/write_file.hpp>
#include <translate/tokenizer.hpp>

#include <build_catalogue/options.hpp>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace build_catalogue {

namespace {

enum Code : int { fine = 0, bad_input = 2 };

/// Numbers with white space between them.
std::vector<sluice::Token> read_tokens(std::string_view line, std::string const& place) {
  std::vector<sluice::Token> tokens;
  auto const* at = line.data();
  auto const* const end = at + line.size();
  for (;;) {
    while (at != end && (*at == ' ' || *at == '\t')) ++at;
    if (at == end) return tokens;
    sluice::Token token = 0;
    auto const [rest, error] = std::from_chars(at, end, token);
    if (error != std::errc() || token < 0 || (rest != end && *rest != ' ' && *rest != '\t'))
      throw text::InputError(place + ": '" + std::string(line) + "' is not token numbers");
    tokens.push_back(token), at = rest;
  }
}

void print(sluice::Catalogue const& catalogue) {
  std::printf("items: %d, of %d to %d tokens, the largest %d\n", catalogue.size(), catalogue.shortest(),
              catalogue.longest(), catalogue.largest_token());
  std::printf("nodes: %lld\n", static_cast<long long>(catalogue.nodes()));
  std::printf("bytes: %zu, %.2f an item\n", catalogue.bytes().size(),
              static_cast<double>(catalogue.bytes().size()) / catalogue.size());
}

void build(Options const& options) {
  auto const& input = options.text.empty() ? options.tokens : options.text;
  std::unique_ptr<translate::Tokenizer> tokenizer;
  if (!options.text.empty()) tokenizer = std::make_unique<translate::Tokenizer>(options.tokenizer);
  std::ifstream stream(input, std::ios::binary);
  if (!stream || std::filesystem::is_directory(input)) throw text::InputError(input.string() + ": cannot be opened");
  sluice::CatalogueBuilder builder(options.duplicates);
  text::LineReader reader(stream);
  for (std::string line; reader.next(line);) {
    auto const place = input.string() + ":" + std::to_string(reader.number());
    if (!text::valid_utf8(line)) throw text::InputError(place + ": not valid UTF-8");
    auto const tokens = tokenizer ? tokenizer->encode(line) : read_tokens(line, place);
    if (tokens.empty()) throw text::InputError(place + ": has no tokens");
    builder.add(tokens);
  }
  if (stream.bad()) throw text::InputError(input.string() + ": cannot be read");
  if (builder.added() == 0) throw text::InputError(input.string() + ": has no items");
  auto const catalogue = builder.build();
  text::write_file(options.out, [&](std::ostream& to) { catalogue.write(to); });
  if (!options.numbers.empty())
    text::write_file(options.numbers, [&](std::ostream& to) {
      for (auto const item : builder.items()) to << item << '\n';
    });
  std::printf("lines: %lld, %lld there already\n", static_cast<long long>(builder.added()),
              static_cast<long long>(builder.duplicates()));
  print(catalogue);
}

std::string spell(std::span<sluice::Token const> tokens, translate::Tokenizer const* tokenizer) {
  if (tokenizer != nullptr) return tokenizer->decode(tokens);
  std::string spelt;
  for (auto const token : tokens) spelt += (spelt.empty() ? "" : " ") + std::to_string(token);
  return spelt;
}

void look(Options const& options) {
  auto const catalogue = sluice::Catalogue::open(options.in.string());
  std::unique_ptr<translate::Tokenizer> tokenizer;
  if (!options.tokenizer.empty()) tokenizer = std::make_unique<translate::Tokenizer>(options.tokenizer);
  auto const prefix = tokenizer ? tokenizer->encode(options.prefix) : read_tokens(options.prefix, "--look");
  auto const node = catalogue.find_beginning(prefix);
  std::size_t children = 0;
  catalogue.for_each_child(node, [&](sluice::Token, sluice::Item, sluice::Item) { ++children; });
  std::printf("items: %d, %zu tokens may follow%s\n", node.empty() ? 0 : node.last - node.first, children,
              catalogue.is_item(node) ? ", or the end" : "");
  for (auto item = node.first; item < node.last && static_cast<std::size_t>(item - node.first) < options.most; ++item) {
    auto tokens = catalogue.tokens(item);
    for (auto const token : tokens)
      if (tokenizer && token >= tokenizer->size())
        throw text::InputError(options.in.string() + ": token " + std::to_string(token) + " is none of " +
                               options.tokenizer.string());
    std::printf("%d\t%s\n", item, spell(tokens, tokenizer.get()).c_str());
  }
}

void run(Options const& options) {
  switch (options.task) {
    case Options::Task::build: return build(options);
    case Options::Task::check: return print(sluice::Catalogue::open(options.in.string()));
    case Options::Task::look: return look(options);
  }
}

}  // namespace

}  // namespace build_catalogue

int main(int argc, char** argv) try {
  if (auto const options = build_catalogue::parse(argc, argv)) build_catalogue::run(*options);
  return build_catalogue::fine;
} catch (std::exception const& error) {
  std::cerr << "build_catalogue: " << error.what() << '\n';
  return build_catalogue::bad_input;
}
