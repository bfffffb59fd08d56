// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/train_clusters.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;

namespace {

Clusters random_clusters(unsigned seed, std::int32_t vocabulary, bool half) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Clusters clusters{.hidden_size = 5, .vocabulary_size = vocabulary};
  for (int c = 0; c < 7; ++c) {
    for (int k = 0; k < 5; ++k) {
      auto const x = normal(generator);
      clusters.centroids.push_back(half ? detail::round_to_bfloat16(x) : x);
    }
    std::vector<Token> tokens(c == 3 ? 0 : generator() % 9);
    for (auto& token : tokens) token = static_cast<Token>(generator() % static_cast<unsigned>(vocabulary));
    std::ranges::sort(tokens);
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    clusters.tokens.insert(clusters.tokens.end(), tokens.begin(), tokens.end());
    clusters.begin.push_back(std::ssize(clusters.tokens));
  }
  return clusters;
}

ClustersByDirection example() {
  return {{"de-en", random_clusters(1, 300, true)},
          {"en-de", random_clusters(2, 2147483647, false)},
          {"", random_clusters(3, 1, true)}};
}

std::string written(ClustersByDirection const& directions) {
  std::ostringstream stream;
  write_clusters(stream, directions);
  return stream.str();
}
ClustersByDirection read(std::string const& bytes) {
  std::istringstream stream(bytes);
  return read_clusters(stream);
}
std::string complaint(std::string const& bytes) {
  try {
    read(bytes);
  } catch (std::runtime_error const& error) {
    return error.what();
  }
  return "none";
}

/// A file around content that somebody else wrote.
std::string wrapped(std::string const& content, std::uint32_t version = 1) {
  std::string file("SLUICECL");
  detail::put(file, version);
  detail::put(file, std::uint64_t{content.size()});
  file += content;
  detail::put(file, detail::fnv1a(file));
  return file;
}
std::string number(std::uint32_t x) {
  std::string bytes;
  detail::put(bytes, x);
  return bytes;
}

}  // namespace

TEST_CASE("clusters come back from a file bit for bit", "[clusters_file]") {
  auto const directions = example();
  CHECK(read(written(directions)) == directions);
  CHECK(read(written({})).empty());
  // 7 centroids [5] of 2 or of 4 bytes.
  auto const half = written({{"x", random_clusters(1, 300, true)}}).size();
  CHECK(written({{"x", random_clusters(1, 300, false)}}).size() == half + 7 * 5 * 2);
}

TEST_CASE("a file of clusters is the same on every machine", "[clusters_file]") {
  Clusters const clusters{
      .hidden_size = 1, .vocabulary_size = 400, .centroids = {1, -2}, .begin = {0, 2, 3}, .tokens = {0, 2, 399}};
  auto const file = written({{"a", clusters}});
  std::string const content("\1\0\0\0\1\0\0\0a\1\0\0\0\x90\1\0\0\2\0\0\0\1\x80\x3F\0\xC0\2\0\1\1\x8F\3", 32);
  CHECK(file.substr(8, 12) == std::string("\1\0\0\0\x20\0\0\0\0\0\0\0", 12));
  CHECK(file.substr(20, 32) == content);
  CHECK(file == wrapped(content));
  CHECK(detail::fnv1a("foobar") == 0x85944171F73967E8u);  // of its authors
}

TEST_CASE("clusters that are not valid are not written", "[clusters_file]") {
  std::ostringstream stream;
  CHECK_THROWS_AS(write_clusters(stream, {{"x", {}}}), std::invalid_argument);
  CHECK(stream.str().empty());
  stream.setstate(std::ios::badbit);
  CHECK_THROWS_AS(write_clusters(stream, example()), std::runtime_error);
}

TEST_CASE("a file of clusters that was cut off is refused, wherever", "[clusters_file]") {
  auto const file = written(example());
  CHECK(complaint("") == "clusters: there is nothing to read");
  for (std::size_t size = 1; size < file.size(); ++size)
    REQUIRE(complaint(file.substr(0, size)) == "clusters: cut off after " + std::to_string(size) + " bytes");
  CHECK(complaint(file + '\0') == "clusters: something follows the end");
}

TEST_CASE("a file of clusters with changed bytes is refused", "[clusters_file]") {
  auto const file = written(example());
  for (std::size_t i = 0; i < file.size(); ++i)
    for (unsigned bit = 0; bit < 8; ++bit) {
      auto broken = file;
      broken[i] = static_cast<char>(static_cast<unsigned char>(broken[i]) ^ (1u << bit));
      REQUIRE(complaint(broken) != "none");
    }
  std::mt19937 generator(1);
  for (int run = 0; run < 20000; ++run) {
    auto broken = file;
    for (auto changes = 1 + generator() % 8; changes > 0; --changes)
      broken[generator() % broken.size()] = static_cast<char>(generator() & 0xFF);
    if (broken != file) REQUIRE(complaint(broken) != "none");
  }
}

TEST_CASE("the message says what is wrong with a file of clusters", "[clusters_file]") {
  CHECK(complaint("{\"this\": \"is JSON\", \"as\": \"one sees\"}") == "clusters: this is not a file of clusters");
  CHECK(complaint(wrapped("", 2)) == "clusters: version 2 of the format is unknown; only 1 is known");
  auto broken = written(example());
  broken[60] = static_cast<char>(broken[60] + 1);
  CHECK(complaint(broken) == "clusters: damaged: the checksum is wrong");
}

TEST_CASE("whatever the content says, reading takes little memory and gives valid clusters or an error",
          "[clusters_file]") {
  auto const name = number(1) + number(1) + "a";
  auto const huge = number(0x7FFFFFFF);
  CHECK(complaint(wrapped("")) == "clusters: number of directions: 4 bytes announced, 0 left");
  CHECK(complaint(wrapped(number(0) + "x")) == "clusters: something follows the last direction");
  CHECK(complaint(wrapped(number(1) + huge + "a")) == "clusters: name: 2147483647 bytes announced, 1 left");
  CHECK(complaint(wrapped(name + number(0) + huge + huge + '\0')) == "clusters: hidden size is 0");
  CHECK(complaint(wrapped(name + huge + number(0) + huge + '\0')) == "clusters: vocabulary size is 0");
  CHECK(complaint(wrapped(name + huge + huge + number(0x80000000) + '\0')) ==
        "clusters: number of clusters is 2147483648");
  CHECK(complaint(wrapped(name + huge + huge + huge + '\2')) == "clusters: type of centroids is 2, neither 0 nor 1");
  CHECK(complaint(wrapped(name + huge + huge + huge + '\0')) ==
        "clusters: centroids: 18446744056529682436 bytes announced, 0 left");
  auto const one = name + number(1) + number(10) + number(1) + '\1';  // d, V, one cluster
  std::string const zero("\0\0", 2);
  CHECK(complaint(wrapped(one + zero + '\1' + '\x09')) == "none");
  CHECK(complaint(wrapped(one + zero + '\1' + '\x0A')) == "clusters: token 10 is outside the vocabulary");
  CHECK(complaint(wrapped(one + zero + '\2' + '\x09')) == "clusters: token: 1 bytes announced, 0 left");
  CHECK(complaint(wrapped(one + zero + "\x80\x80\x80\x80\x10")) == "clusters: number of tokens is more than 32 bits");
  CHECK(complaint(wrapped(one + zero + "\x80\x80\x80\x80\x80\x01")) ==
        "clusters: number of tokens is more than 32 bits");
  CHECK(complaint(wrapped(one + "\xC0\x7F" + '\0')) ==
        "clusters: direction 'a': sluice: clusters.centroids[0] = nan: must be finite");
  auto const good = one + zero + '\1' + '\x09';
  CHECK(complaint(wrapped(number(2) + good.substr(4) + good.substr(4))) == "clusters: direction 'a' comes twice");

  // Changed, and the checksum made right again.
  auto const content = [&] {
    auto const file = written(example());
    return file.substr(20, file.size() - 28);
  }();
  std::mt19937 generator(2);
  for (int run = 0; run < 20000; ++run) {
    auto broken = content;
    for (auto changes = 1 + generator() % 4; changes > 0; --changes)
      broken[generator() % broken.size()] = static_cast<char>(generator() & 0xFF);
    if (generator() % 4 == 0) broken.resize(generator() % broken.size());
    try {
      for (auto const& [direction, clusters] : read(wrapped(broken))) check(clusters);
    } catch (std::runtime_error const& error) {
      REQUIRE(std::string(error.what()).starts_with("clusters: "));
    }
  }
}

TEST_CASE("a wrong length takes no memory", "[clusters_file]") {
  auto file = written(example());
  file[8 + 4 + 6] = '\x10';  // 2^52 bytes and some
  CHECK(complaint(file) == "clusters: cut off after " + std::to_string(file.size()) + " bytes");
}

TEST_CASE("the clusters that ship belong to the model that ships", "[clusters_file]") {
  std::ifstream stream(SLUICE_SOURCE_DIR "/examples/apps/translate/model/clusters.bin", std::ios::binary);
  REQUIRE(stream);
  auto const directions = read_clusters(stream);
  REQUIRE(directions.size() == 1);
  auto const& clusters = directions.at("de-en");
  CHECK(clusters.size() == 400);
  CHECK(clusters.hidden_size == 256);
  CHECK(clusters.vocabulary_size == 8000);
  Token const eos = 2;
  auto ends = 0;
  for (std::ptrdiff_t c = 0; c < clusters.size(); ++c) ends += std::ranges::binary_search(clusters[c], eos);
  CHECK(ends > 0);
}
