// SPDX-License-Identifier: Apache-2.0
// translate_mpi: translate on many machines, as one run with one output.

#include <text/lines.hpp>
#include <translate/decoders.hpp>
#include <translate/fingerprint.hpp>
#include <translate/options.hpp>
#include <translate/progress.hpp>
#include <translate/shares.hpp>
#include <translate/translation.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mpi.h>
#include <optional>
#include <string>
#include <translate_mpi/parts.hpp>
#include <translate_mpi/ranks.hpp>
#include <translate_mpi/shards.hpp>
#include <utility>
#include <vector>

namespace {

using namespace translate_mpi;
using Clock = std::chrono::steady_clock;

/// What each rank did; times in microseconds.
enum Count : std::size_t { shards, sentences, resumed, steps, microseconds, waited, counts };

void write_statistics(Ranks const& ranks, std::array<std::uint64_t, counts> const& mine,
                      std::filesystem::path const& file) {
  std::vector<std::uint64_t> all(ranks.first() ? counts * static_cast<std::size_t>(ranks.count()) : 0);
  MPI_Gather(mine.data(), counts, MPI_UINT64_T, all.data(), counts, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (!ranks.first() || file.empty()) return;
  auto list = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < all.size(); i += counts)
    list.push_back({{"shards", all[i + shards]},
                    {"sentences", all[i + sentences]},
                    {"resumed", all[i + resumed]},
                    {"steps", all[i + steps]},
                    {"seconds", static_cast<double>(all[i + microseconds]) / 1e6},
                    {"waited", static_cast<double>(all[i + waited]) / 1e6}});
  std::ofstream stream(file, std::ios::binary);
  stream << nlohmann::ordered_json{{"ranks", list}}.dump(1) << std::endl;
  if (!stream) throw std::runtime_error(file.string() + ": cannot be written");
}

std::uint64_t since(Clock::time_point begin) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin).count());
}

/// One rank's part of the work.
int run(Ranks const& ranks, translate::Options options) {
  std::optional<translate::Input> input;
  together(ranks, [&] {
    if (options.threads > 1 && !ranks.threads()) throw text::InputError("--threads: this MPI allows only one thread");
    translate::check_files(options);
    translate::refuse_input(options.output, options.input);
    input.emplace(options.input);
    if (!input->regular()) throw text::InputError(input->name() + ": translate_mpi needs a file");
    if (input->format() != translate::Format::plain)
      throw text::InputError(input->name() +
                             ": is compressed, so that ranks cannot start in the middle: decompress it");
  });
  Shards const shards(ranks, *input, options.input, options.shard_size);
  input.reset();

  auto const stats = std::exchange(options.stats, {});
  std::optional<translate::Resources> resources;
  std::unique_ptr<translate::Decoders> decoders;
  translate::Fingerprint fingerprint;
  together(ranks, [&] {
    resources.emplace(options, [&](translate::Input& i) { i.set(shards.whole(), shards.checksum()); });
    if (!options.window) options.window = resources->input.window(options.batch);
    decoders = translate::make_decoders(options, resources->models, resources->restrictions);
    fingerprint = translate::fingerprint(options, resources->input);
    fingerprint["--shard-size"] = std::to_string(options.shard_size);
    if (ranks.first() && !stats.empty() && !std::ofstream(stats))
      throw text::InputError(stats.string() + ": cannot be written");
  });

  Parts parts(options.output);
  std::pair<bool, int> before;
  together(ranks, [&] {
    if (ranks.first()) before = parts.begin(options.resume, fingerprint);
  });
  if (ranks.largest(before.first ? 1 : 0) > 0) return static_cast<int>(ranks.largest(std::uint64_t(before.second)));

  auto const begin = Clock::now();
  translate::Progress progress(options.progress, "translate_mpi");
  if (ranks.first()) progress.follow();
  else progress.hide();
  std::array<std::uint64_t, counts> mine{};
  int code = 0;
  {
    DealtShards dealt(ranks, shards, parts.folder(), translate::format_of_name(options.output), fingerprint, progress);
    translate::Translation translation(options, *resources, *decoders, dealt, progress);
    try {
      code = translation.run();
    } catch (std::exception const& error) {  // the others wait for what this rank has been dealt
      progress.say(std::string(error.what()) + "; continue with --resume");
      MPI_Abort(MPI_COMM_WORLD, translate::sentence_failed);
    }
    mine[Count::shards] = dealt.dealt(), mine[Count::resumed] = translation.resumed();
    mine[Count::microseconds] = since(begin);
    ranks.wait();
  }
  auto const statistics = decoders->statistics();
  mine[Count::sentences] = static_cast<std::uint64_t>(statistics.sentences);
  mine[Count::steps] = static_cast<std::uint64_t>(statistics.steps);
  mine[Count::waited] = since(begin) - mine[Count::microseconds];
  code = static_cast<int>(ranks.largest(static_cast<std::uint64_t>(code)));
  parts.join(ranks, shards, fingerprint, code);
  write_statistics(ranks, mine, stats);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  Ranks const ranks(argc, argv);
  auto const complain = [](std::exception const& error, int code) {
    std::cerr << "translate_mpi: " << error.what() << std::endl;
    return code;
  };
  try {
    std::optional<translate::Options> options;
    auto const asks = [](std::string const& flag) { return flag == "--help" || flag == "-h" || flag == "--version"; };
    if (!ranks.first() && std::any_of(argv + 1, argv + argc, asks)) return translate::fine;
    if (std::any_of(argv + 1, argv + argc, asks)) options = translate::parse(argc, argv, true);
    else together(ranks, [&] { options = translate::parse(argc, argv, true); });
    return options ? run(ranks, *options) : translate::fine;
  } catch (Agreed const&) {
    return translate::bad_input;
  } catch (text::InputError const& error) {
    return complain(error, translate::bad_input);
  } catch (std::invalid_argument const& error) {
    return complain(error, translate::bad_input);
  } catch (std::exception const& error) {
    return complain(error, translate::sentence_failed);
  }
}
