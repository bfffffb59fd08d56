// SPDX-License-Identifier: Apache-2.0
// convert_shipped: the model that ships with the examples (model.safetensors, spm.model), or one like it, as a folder that
// CTranslate2 reads.
#include <text/command_line.hpp>
#include <text/lines.hpp>
#include <transformer/safetensors.hpp>
#include <translate/model.hpp>
#include <translate/tokenizer.hpp>

#include <cstdio>
#include <ctranslate2/conversion.hpp>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  auto model = translate::default_model();
  std::filesystem::path folder;
  text::CommandLine app("Writes the examples' Transformer in CTranslate2's format.", "convert_shipped");
  app.add_option("--model", model, "folder of model.safetensors and spm.model (the one that ships)")->type_name("DIR");
  app.add_option("FOLDER", folder, "folder to write to; created if missing")->required()->type_name("");
  auto const complain = [](char const* what, int code) {
    std::fprintf(stderr, "convert_shipped: %s\n", what);
    return code;
  };
  try {
    if (!app.read(argc, argv)) return 0;
    translate::Tokenizer const tokenizer(model / "spm.model");
    std::vector<std::string> pieces;
    for (sluice::Token token = 0; token < tokenizer.size(); ++token) pieces.push_back(tokenizer.piece(token));
    sluice::example::convert_to_ctranslate2(sluice::example::Safetensors(model / "model.safetensors"), pieces, folder);
    std::filesystem::copy_file(model / "spm.model", folder / "sentencepiece.model",
                               std::filesystem::copy_options::overwrite_existing);
    return 0;
  } catch (text::InputError const& error) {
    return complain(error.what(), 2);
  } catch (std::exception const& error) {
    return complain(error.what(), 1);
  }
}
