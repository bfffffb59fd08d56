// SPDX-License-Identifier: Apache-2.0
/// \file
/// train_clusters(): clusters of recorded hidden vectors, with the tokens that were likely in each. ClusterSamples and
/// RecordHidden: hidden vectors recorded while decoding, to train clusters on. write_clusters() and read_clusters(): clusters
/// as a file.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/clusters.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/k_means.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <limits>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

// The format, version 1. All numbers are little-endian.
//
//   8 bytes   "SLUICECL"
//   uint32    version
//   uint64    length of the content in bytes
//   content   uint32 number of directions; for each, in ascending order of names:
//               uint32 length of the name, the name
//               uint32 d, uint32 V, uint32 number of clusters
//               uint8  centroids are 0 = float32, 1 = bfloat16; then [clusters, d] of them
//               for each cluster: number of tokens, then each token minus the one before (at first -1), minus 1.
//               These are varints: 7 bits a byte, low ones first, the high bit says that more follow.
//   uint64    FNV-1a of all before

namespace detail {

constexpr std::string_view clusters_magic = "SLUICECL";
constexpr std::uint32_t clusters_version = 1;

/// FNV-1a, 64 bits (Fowler, Noll and Vo). Every single changed byte changes it.
constexpr std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (auto const byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  return hash;
}

template <class Number>
void put(std::string& to, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) to.push_back(static_cast<char>((number >> (8 * i)) & 0xFF));
}

inline void put_varint(std::string& to, std::uint32_t number) {
  for (; number >= 0x80; number >>= 7) to.push_back(static_cast<char>((number & 0x7F) | 0x80));
  to.push_back(static_cast<char>(number));
}

SLUICE_LAZY void put_clusters(std::string& to, Clusters const& clusters) {
  put(to, static_cast<std::uint32_t>(clusters.hidden_size));
  put(to, static_cast<std::uint32_t>(clusters.vocabulary_size));
  put(to, static_cast<std::uint32_t>(clusters.size()));
  // Half the size if that loses nothing.
  auto const half = std::all_of(clusters.centroids.begin(), clusters.centroids.end(),
                                [](float x) { return (std::bit_cast<std::uint32_t>(x) & 0xFFFF) == 0; });
  put(to, std::uint8_t{half});
  for (auto const x : clusters.centroids) {
    auto const bits = std::bit_cast<std::uint32_t>(x);
    if (half) put(to, static_cast<std::uint16_t>(bits >> 16));
    else put(to, bits);
  }
  for (std::ptrdiff_t c = 0; c < clusters.size(); ++c) {
    put_varint(to, static_cast<std::uint32_t>(clusters[c].size()));
    Token last = -1;
    for (auto const token : clusters[c]) put_varint(to, static_cast<std::uint32_t>(token - last - 1)), last = token;
  }
}

/// Reads numbers from the front of a file's content. The checksum was right, so errors are the writer's.
class ClustersReader {
 public:
  explicit ClustersReader(std::string_view bytes) : bytes_(bytes) {}

  SLUICE_LAZY [[noreturn]] static void fail(std::string const& what) { throw std::runtime_error("clusters: " + what); }

  template <class Number>
  Number number(char const* what) {
    auto const bytes = take(sizeof(Number), what);
    Number number = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i)
      number = static_cast<Number>(number | static_cast<Number>(static_cast<unsigned char>(bytes[i])) << (8 * i));
    return number;
  }

  SLUICE_LAZY std::uint32_t varint(char const* what) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      auto const byte = number<std::uint8_t>(what);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte >= 0x80) continue;
      if (value > (std::numeric_limits<std::uint32_t>::max)()) break;
      return static_cast<std::uint32_t>(value);
    }
    fail(std::string(what) + " is more than 32 bits");
  }

  SLUICE_LAZY std::string_view take(std::size_t count, char const* what) {
    if (count > bytes_.size())
      fail(std::string(what) + ": " + std::to_string(count) + " bytes announced, " + std::to_string(bytes_.size()) +
           " left");
    auto const taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  SLUICE_LAZY Clusters clusters() {
    constexpr std::uint32_t largest = (std::numeric_limits<std::int32_t>::max)();
    auto const d = number<std::uint32_t>("hidden size");
    auto const v = number<std::uint32_t>("vocabulary size");
    auto const count = number<std::uint32_t>("number of clusters");
    auto const half = number<std::uint8_t>("type of centroids");
    for (auto const& [value, what] :
         {std::pair(d, "hidden size"), {v, "vocabulary size"}, {count, "number of clusters"}})
      if (value == 0 || value > largest) fail(std::string(what) + " is " + std::to_string(value));
    if (half > 1) fail("type of centroids is " + std::to_string(half) + ", neither 0 nor 1");

    Clusters clusters{.hidden_size = static_cast<std::ptrdiff_t>(d), .vocabulary_size = static_cast<std::int32_t>(v)};
    auto const numbers = std::size_t{d} * count;  // < 2^62, so that bytes fit too
    std::size_t const width = half != 0 ? 2 : 4;
    ClustersReader centroids(take(numbers * width, "centroids"));
    clusters.centroids.resize(numbers);
    for (auto& x : clusters.centroids)
      x = std::bit_cast<float>(half != 0 ? std::uint32_t{centroids.number<std::uint16_t>("centroid")} << 16
                                         : centroids.number<std::uint32_t>("centroid"));
    for (std::uint32_t c = 0; c < count; ++c) {
      std::int64_t token = -1;
      for (auto left = varint("number of tokens"); left > 0; --left) {
        token += std::int64_t{varint("token")} + 1;
        if (token >= std::int64_t{v}) fail("token " + std::to_string(token) + " is outside the vocabulary");
        clusters.tokens.push_back(static_cast<Token>(token));
      }
      clusters.begin.push_back(std::ssize(clusters.tokens));
    }
    return clusters;
  }

  bool done() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

/// Appends up to `count` bytes of a stream to `to`, in pieces, so that a wrong count does not allocate much memory.
SLUICE_LAZY void get_bytes(std::istream& from, std::uint64_t count, std::string& to) {
  constexpr std::size_t at_once = std::size_t{1} << 20;
  while (count > 0 && from) {
    auto const before = to.size();
    to.resize(before + static_cast<std::size_t>(std::min<std::uint64_t>(count, at_once)));
    from.read(to.data() + before, static_cast<std::streamsize>(to.size() - before));
    count -= static_cast<std::uint64_t>(from.gcount());
    to.erase(before + static_cast<std::size_t>(from.gcount()));
  }
}

}  // namespace detail

/// Writes the clusters of one or several directions. A centroid number takes two bytes if all are exact in bfloat16,
/// else four; reading gives back what was written, bit for bit. Write to a binary stream.
/// \throws std::invalid_argument  for invalid clusters, see check(): nothing is written
/// \throws std::runtime_error     if writing to the stream fails
SLUICE_LAZY void write_clusters(std::ostream& stream, ClustersByDirection const& directions) {
  std::string content;
  detail::put(content, static_cast<std::uint32_t>(directions.size()));
  for (auto const& [name, clusters] : directions) {
    check(clusters);
    detail::put(content, static_cast<std::uint32_t>(name.size()));
    content += name;
    detail::put_clusters(content, clusters);
  }
  std::string file(detail::clusters_magic);
  detail::put(file, detail::clusters_version);
  detail::put(file, std::uint64_t{content.size()});
  file += content;
  detail::put(file, detail::fnv1a(file));
  stream.write(file.data(), static_cast<std::streamsize>(file.size()));
  stream.flush();
  if (!stream) throw std::runtime_error("clusters: cannot be written");
}

/// Reads what write_clusters() wrote, from a binary stream, to its end.
/// \throws std::runtime_error  for anything else, saying what is wrong: not a file of clusters, a newer version,
///                             truncated, or corrupt
SLUICE_LAZY ClustersByDirection read_clusters(std::istream& stream) {
  using Reader = detail::ClustersReader;
  constexpr auto head = detail::clusters_magic.size() + 12;
  std::string file;
  detail::get_bytes(stream, head, file);
  auto const magic = std::string_view(file).substr(0, detail::clusters_magic.size());
  if (file.empty()) Reader::fail("there is nothing to read");
  if (magic != detail::clusters_magic.substr(0, magic.size())) Reader::fail("this is not a file of clusters");
  auto const cut = [&] { Reader::fail("cut off after " + std::to_string(file.size()) + " bytes"); };
  if (file.size() < head) cut();
  Reader reader(std::string_view(file).substr(magic.size()));
  if (auto const written = reader.number<std::uint32_t>("version"); written != detail::clusters_version)
    Reader::fail("version " + std::to_string(written) + " of the format is unknown; only 1 is known");
  auto const length = reader.number<std::uint64_t>("length");
  detail::get_bytes(stream, length, file);
  auto const end = file.size();
  detail::get_bytes(stream, 8, file);
  if (end - head < length || file.size() - end < 8) cut();
  if (stream.peek() != std::istream::traits_type::eof()) Reader::fail("something follows the end");

  std::string_view const bytes(file);
  if (Reader(bytes.substr(end)).number<std::uint64_t>("checksum") != detail::fnv1a(bytes.substr(0, end)))
    Reader::fail("damaged: the checksum is wrong");
  Reader content(bytes.substr(head, end - head));
  ClustersByDirection directions;
  for (auto left = content.number<std::uint32_t>("number of directions"); left > 0; --left) {
    auto name = std::string(content.take(content.number<std::uint32_t>("length of a name"), "name"));
    auto const [place, fresh] = directions.try_emplace(std::move(name), content.clusters());
    if (!fresh) Reader::fail("direction '" + place->first + "' comes twice");
    try {
      check(place->second);
    } catch (std::invalid_argument const& problem) {
      Reader::fail("direction '" + place->first + "': " + problem.what());
    }
  }
  if (!content.done()) Reader::fail("something follows the last direction");
  return directions;
}

/// What ClusterSamples keep.
struct ClusterSamplesOptions {
  std::ptrdiff_t hidden_size = 0;                                      ///< d; >= 1
  std::int32_t vocabulary_size = 0;                                    ///< V; >= 1
  std::ptrdiff_t likely = 1;                                           ///< K: tokens kept for each vector; >= 1
  std::ptrdiff_t most = (std::numeric_limits<std::ptrdiff_t>::max)();  ///< the most samples kept; >= 1
  std::uint64_t seed = 1;                                              ///< decides which are kept
};

/// Hidden vectors with their K most probable tokens: all that were added, or a uniform sample of `most` of them
/// (reservoir sampling, Vitter's algorithm R). The sample depends on the seed and on the order of additions. Memory: 4
/// (d + K) bytes per vector.
class ClusterSamples {
 public:
  /// \throws std::invalid_argument  for invalid options
  explicit ClusterSamples(ClusterSamplesOptions const& options) : options_(options) {
    require(options.hidden_size >= 1, "ClusterSamples: hidden_size", options.hidden_size, "must be at least 1");
    require(options.vocabulary_size >= 1, "ClusterSamples: vocabulary_size", options.vocabulary_size,
            "must be at least 1");
    require(options.likely >= 1, "ClusterSamples: likely", options.likely, "must be at least 1");
    require(options.most >= 1, "ClusterSamples: most", options.most, "must be at least 1");
  }

  std::ptrdiff_t size() const { return size_; }  ///< n: samples kept
  std::int64_t seen() const { return seen_; }    ///< calls of add()
  std::ptrdiff_t hidden_size() const { return options_.hidden_size; }
  std::int32_t vocabulary_size() const { return options_.vocabulary_size; }
  std::ptrdiff_t likely() const { return options_.likely; }

  /// The vectors, [n, d].
  MatrixView<float const> hidden() const { return {hidden_.data(), size_, hidden_size(), hidden_size()}; }
  /// The tokens of sample i, most probable first. If there were fewer than K, the last one repeats.
  std::span<Token const> tokens(std::ptrdiff_t i) const {
    return std::span(tokens_).subspan(static_cast<std::size_t>(i * likely()), static_cast<std::size_t>(likely()));
  }

  /// Offers a vector [d] with the first K of `tokens`, most probable first; the reservoir keeps or drops it. Without
  /// tokens, the vector only counts as seen.
  /// \throws std::invalid_argument  if the shapes do not fit, for a token outside the vocabulary or a number that is
  ///                                not finite
  void add(std::span<float const> hidden, std::span<Token const> tokens) {
    if (!tokens.empty()) check(hidden, tokens);
    auto const n = seen_++;
    if (tokens.empty()) return;
    auto place = size_;
    if (size_ < options_.most) {
      hidden_.insert(hidden_.end(), hidden.begin(), hidden.end());
      tokens_.resize(tokens_.size() + static_cast<std::size_t>(likely()));
      ++size_;
    } else {
      place = draw(n);
      if (place >= options_.most) return;
      std::ranges::copy(hidden, hidden_.begin() + place * hidden_size());
    }
    auto const count = (std::min)(std::ssize(tokens), likely());
    auto const to = tokens_.begin() + place * likely();
    std::copy_n(tokens.begin(), count, to);
    std::fill(to + count, to + likely(), tokens[static_cast<std::size_t>(count - 1)]);
  }

  /// Whether a vector added after `ahead` others may be kept; if not, its tokens need not be computed.
  bool may_keep(std::int64_t ahead = 0) const { return size_ < options_.most || draw(seen_ + ahead) < options_.most; }

 private:
  void check(std::span<float const> hidden, std::span<Token const> tokens) const {
    require(std::ssize(hidden) == hidden_size(), "ClusterSamples: hidden.size()", hidden.size(),
            "must be hidden_size, " + std::to_string(hidden_size()));
    require(!tokens.empty(), "ClusterSamples: tokens.size()", tokens.size(), "must be at least 1");
    for (auto const token : tokens)
      require(token >= 0 && token < vocabulary_size(), "ClusterSamples: token", token, "is outside the vocabulary");
    for (auto const x : hidden) require(std::isfinite(x), "ClusterSamples: hidden", x, "must be finite");
  }

  /// The place that vector n takes, in [0, n].
  std::ptrdiff_t draw(std::int64_t n) const {
    auto const chance = uniform(derive(options_.seed, static_cast<std::uint64_t>(n)), 0);
    return static_cast<std::ptrdiff_t>(chance * static_cast<double>(n + 1));
  }

  ClusterSamplesOptions options_;
  std::ptrdiff_t size_ = 0;
  std::int64_t seen_ = 0;
  std::vector<float> hidden_;
  std::vector<Token> tokens_;
};

/// An expander that answers as `E` does and records, for every line, the hidden vector and the K tokens that are most
/// probable after the query's edits, `only` and shortlist. If a query wants less (greedy search, with K > 1) or
/// something else (noise), it asks a second expander, a copy. Lines of requests with Request::confidence are recorded
/// twice.
///
/// \tparam E  an expander for Hidden<float>, such as DenseProjection
template <class E>
class RecordHidden {
 public:
  /// \param samples  receives the recorded vectors; must outlive this
  /// \throws std::invalid_argument  if `expander` has another vocabulary or vector size
  RecordHidden(E expander, ClusterSamples& samples)
      : expander_(std::move(expander)), again_(expander_), samples_(&samples) {
    if constexpr (requires { expander_.vocabulary_size(); })
      require(expander_.vocabulary_size() == samples.vocabulary_size(), "RecordHidden: expander.vocabulary_size()",
              expander_.vocabulary_size(), "must be that of the samples");
    if constexpr (requires { expander_.hidden_size(); })
      require(expander_.hidden_size() == samples.hidden_size(), "RecordHidden: expander.hidden_size()",
              expander_.hidden_size(), "must be that of the samples");
  }

  Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries, std::span<Group const> groups) {
    auto const answer = expander_.expand(hidden, queries, groups);
    auto const more = ask_again(hidden, queries, answer);
    std::size_t next = 0;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      tokens_.clear();
      if (next < asked_.size() && asked_[next] == i) take(more[next++]);
      else if (complete(queries[i], answer[i])) take(answer[i]);
      samples_->add(hidden[static_cast<std::ptrdiff_t>(i)], tokens_);
    }
    return answer;
  }

  std::ptrdiff_t vocabulary_size() const requires requires(E const& e) { e.vocabulary_size(); }
  { return expander_.vocabulary_size(); }
  std::ptrdiff_t hidden_size() const requires requires(E const& e) { e.hidden_size(); }
  { return expander_.hidden_size(); }

 private:
  /// Whether the list begins with the K most probable tokens (Group::keep may have cut it).
  bool complete(Query const& query, Line const& line) const {
    return query.noise == 0 && query.best >= samples_->likely() && std::ssize(line.best) >= samples_->likely();
  }

  void take(Line const& line) {
    for (auto const& candidate : line.best) {
      if (std::ssize(tokens_) == samples_->likely()) break;
      tokens_.push_back(candidate.token);
    }
  }

  Expansion ask_again(Hidden<float> const& hidden, std::span<Query const> queries, Expansion const& answer) {
    asked_.clear(), queries_.clear(), rows_.clear();
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto const& query = queries[i];
      if (!answer[i].valid || complete(query, answer[i]) || !samples_->may_keep(static_cast<std::int64_t>(i))) continue;
      asked_.push_back(i);
      queries_.push_back({.best = static_cast<std::int32_t>(samples_->likely()),
                          .edits = query.edits,
                          .stage = query.stage,
                          .only = query.only,
                          .shortlist = query.shortlist});
      auto const row = hidden[static_cast<std::ptrdiff_t>(i)];
      rows_.insert(rows_.end(), row.begin(), row.end());
    }
    if (asked_.empty()) return {};
    Group const group{.lines = static_cast<std::int32_t>(asked_.size())};
    return again_.expand(sluice::hidden(rows_.data(), std::ssize(asked_), hidden.columns), queries_, {&group, 1});
  }

  E expander_, again_;
  ClusterSamples* samples_;
  std::vector<std::size_t> asked_;
  std::vector<Query> queries_;
  std::vector<float> rows_;
  std::vector<Token> tokens_;
};

/// Options of train_clusters().
struct TrainClustersOptions {
  std::ptrdiff_t clusters = 400;       ///< in [1, number of samples]
  std::ptrdiff_t likely = 1;           ///< tokens that every sample adds to its cluster, in [1, K of the samples]
  std::int32_t iterations = 20;        ///< of k-means; >= 0
  std::uint64_t seed = 1;              ///< of k-means
  std::ptrdiff_t points = 256;         ///< samples per cluster used for k-means, drawn evenly; >= 1. All samples add
                                       ///< tokens
  std::span<float const> centroids{};  ///< [clusters, d]: from another k-means; then only `likely` and bfloat16 are
                                       ///< used. A view, of that call
  bool bfloat16 = true;                ///< round centroids to bfloat16, which halves the size of their file
};

inline namespace SLUICE_ISA {

/// The samples used for k-means: all, or `options.points` per cluster if there are more. [rows, d]; the memory is in
/// `storage` unless all samples are used.
inline MatrixView<float const> k_means_points(ClusterSamples const& samples, TrainClustersOptions const& options,
                                              std::vector<float>& storage) {
  require(options.clusters >= 1, "train_clusters: clusters", options.clusters, "must be at least 1");
  require(options.clusters <= samples.size(), "train_clusters: clusters", options.clusters,
          "is more than there are samples, " + std::to_string(samples.size()));
  require(options.points >= 1, "train_clusters: points", options.points, "must be at least 1");
  auto const all = samples.hidden();
  if (options.points >= (samples.size() + options.clusters - 1) / options.clusters) return all;
  auto const chosen = detail::draw_subset(options.points * options.clusters, samples.size(), derive(options.seed, 1));
  storage.clear();
  storage.reserve(chosen.size() * static_cast<std::size_t>(all.columns));
  for (auto const i : chosen) storage.insert(storage.end(), all[i].begin(), all[i].end());
  return {storage.data(), std::ssize(chosen), all.columns, all.columns};
}

/// Trains clusters by k-means. The tokens of each cluster are the union of the `likely` most probable tokens of all its
/// samples (Amer et al. 2022, section 2.2), so no sample misses one of its own tokens. Clusters without samples are
/// dropped.
///
/// \throws std::invalid_argument  for invalid options
///
/// Complexity: that of k_means() for its points, plus O(samples * clusters * d).
inline Clusters train_clusters(ClusterSamples const& samples, TrainClustersOptions const& options = {}) {
  require(options.likely >= 1, "train_clusters: likely", options.likely, "must be at least 1");
  require(options.likely <= samples.likely(), "train_clusters: likely", options.likely,
          "is more than were recorded, " + std::to_string(samples.likely()));
  auto const d = samples.hidden_size();
  std::vector<float> centroids(options.centroids.begin(), options.centroids.end());
  if (centroids.empty()) {
    std::vector<float> storage;
    auto const points = k_means_points(samples, options, storage);
    centroids = k_means(points, {options.clusters, options.iterations, options.seed}).centroids;
  }
  require(samples.size() >= 1, "train_clusters: samples.size()", samples.size(), "must be at least 1");
  require(centroids.size() % static_cast<std::size_t>(d) == 0, "train_clusters: centroids.size()", centroids.size(),
          "must be a multiple of the hidden size, " + std::to_string(d));
  if (options.bfloat16)
    std::transform(centroids.begin(), centroids.end(), centroids.begin(), detail::round_to_bfloat16);
  auto const count = std::ssize(centroids) / d;
  MatrixView<float const> const view{centroids.data(), count, d, d};
  detail::check_finite(view, "train_clusters: centroids");

  std::vector<std::int32_t> nearest(static_cast<std::size_t>(samples.size()));
  NearestCentroid(view).find(samples.hidden(), nearest);

  std::vector<std::vector<Token>> sets(static_cast<std::size_t>(count));
  for (std::ptrdiff_t i = 0; i < samples.size(); ++i) {
    auto const tokens = samples.tokens(i).first(static_cast<std::size_t>(options.likely));
    auto& set = sets[static_cast<std::size_t>(nearest[static_cast<std::size_t>(i)])];
    set.insert(set.end(), tokens.begin(), tokens.end());
  }

  Clusters clusters{.hidden_size = d, .vocabulary_size = samples.vocabulary_size()};
  for (std::size_t c = 0; c < sets.size(); ++c) {
    auto& set = sets[c];
    if (set.empty()) continue;
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    auto const centroid = view[static_cast<std::ptrdiff_t>(c)];
    clusters.centroids.insert(clusters.centroids.end(), centroid.begin(), centroid.end());
    clusters.tokens.insert(clusters.tokens.end(), set.begin(), set.end());
    clusters.begin.push_back(std::ssize(clusters.tokens));
  }
  return clusters;
}

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
