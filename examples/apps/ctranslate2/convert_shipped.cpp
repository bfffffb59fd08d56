// SPDX-License-Identifier: Apache-2.0
// convert_shipped: the model that ships with the examples (model.safetensors, spm.model), or one like it, as a folder that
// CTranslate2 reads.
#include <text/lines.hpp>
#include <transformer/safetensors.hpp>
#include <translate/model.hpp>
#include <translate/tokenizer.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <ctranslate2/conversion.hpp>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  auto model = translate::default_model();
  std::filesystem::path folder;
  CLI::App app("Writes the examples' Transformer in CTranslate2's format.", "convert_shipped");
  app.add_option("--model", model, "folder of model.safetensors and spm.model (the one that ships)")->type_name("DIR");
  app.add_option("FOLDER", folder, "folder to write to; created if missing")->required()->type_name("");
  auto const complain = [](char const* what, int code) {
    std::fprintf(stderr, "convert_shipped: %s\n", what);
    return code;
  };
  try {
    app.parse(argc, argv);
    translate::Tokenizer const tokenizer(model / "spm.model");
    std::vector<std::string> pieces;
    for (sluice::Token token = 0; token < tokenizer.size(); ++token) pieces.push_back(tokenizer.piece(token));
    sluice::example::convert_to_ctranslate2(sluice::example::Safetensors(model / "model.safetensors"), pieces, folder);
    std::filesystem::copy_file(model / "spm.model", folder / "sentencepiece.model",
                               std::filesystem::copy_options::overwrite_existing);
    return 0;
  } catch (CLI::Success const& asked) {
    return app.exit(asked);
  } catch (CLI::ParseError const& error) {
    return complain(error.what(), 2);
  } catch (text::InputError const& error) {
    return complain(error.what(), 2);
  } catch (std::exception const& error) {
    return complain(error.what(), 1);
  }
}
