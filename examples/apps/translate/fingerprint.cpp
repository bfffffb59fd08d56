// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/packed_matrix.hpp>
#include <sluice/version.hpp>
#include <sluice/watermark/detail/mark_numbers.hpp>
#include <sluice/watermark/watermark.hpp>

#include <text/checksum.hpp>
#include <text/lines.hpp>
#include <translate/fingerprint.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <vector>

namespace translate {

namespace {

std::string contents(std::filesystem::path const& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> buffer(std::size_t{1} << 20);
  text::Checksum sum;
  while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), stream.gcount() > 0)
    sum.add({buffer.data(), static_cast<std::size_t>(stream.gcount())});
  return std::to_string(sum.length()) + " bytes, " + text::hexadecimal(sum.value());
}

/// What tells keys apart and cannot be turned back into one: a checksum of the file could.
std::string key_mark(sluice::Watermark const& watermark) {
  return text::hexadecimal(sluice::detail::derived_key(watermark.key, 'j').words()[0]);
}

/// The files of a model, of which options may use any.
void add_model(Fingerprint& all, std::string const& name, std::filesystem::path const& model) {
  auto const folder = std::filesystem::is_directory(model);
  for (auto const* file : {"model.safetensors", "spm.model", "clusters.bin", "heads.safetensors"})
    if (auto const path = (folder ? model : model.parent_path()) / file; std::filesystem::is_regular_file(path))
      all[name + " (" + file + ")"] = contents(path);
  if (!folder) all[name] = contents(model);
}

}  // namespace

Fingerprint fingerprint(Options const& options, Input const& input) {
  Fingerprint all;
  for (auto const& [flag, value] : options.said)
    if (flag == "--model" || flag == "--ensemble") continue;  // where they lie does not matter
    else if (flag == "--watermark-key") all[flag] = key_mark(options.watermark.read());
    else if (std::filesystem::is_regular_file(value)) all[flag] = contents(value);
    else if (std::filesystem::is_directory(value)) add_model(all, flag, value);
    else all[flag] = value;
  for (std::size_t i = 0; i < options.models.size(); ++i)
    add_model(all, "model" + (i == 0 ? "" : " " + std::to_string(i + 1)), options.models[i]);
  all["input"] = std::to_string(input.whole().lines) + " lines, " + text::hexadecimal(input.checksum());
  auto const& made = options.model_options;
  all["instructions"] =
      std::string(sluice::instruction_set(made.layers)) + ", " + std::string(sluice::instruction_set(made.output)) +
      " of " + std::to_string(static_cast<int>(made.layers)) + ", " + std::to_string(static_cast<int>(made.output));
  all["version"] = std::to_string(SLUICE_VERSION_MAJOR) + "." + std::to_string(SLUICE_VERSION_MINOR) + "." +
                   std::to_string(SLUICE_VERSION_PATCH);
  return all;
}

void check_files(Options const& options) {
  using std::filesystem::exists, std::filesystem::is_regular_file;
  format_of_name(options.output);
  auto const flag = options.resume ? "--resume" : "--shard";
  if ((options.resume || options.shard) && exists(options.input) && !is_regular_file(options.input) &&
      !is_directory(options.input))
    throw text::InputError(options.input.string() + ": " + flag + " needs a file, which can be read again");
  if (options.resume && exists(options.output) && !is_regular_file(options.output))
    throw text::InputError(options.output.string() + ": --resume needs a file");
}

}  // namespace translate
