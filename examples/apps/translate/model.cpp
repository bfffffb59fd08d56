// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/model.hpp>
#include <sluice/model/ensemble.hpp>
#include <sluice/model/fused.hpp>
#include <sluice/model/projected.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/output/train_clusters.hpp>

#include <text/lines.hpp>
#include <transformer/transformer.hpp>
#include <transformer/weights.hpp>
#include <translate/guess_output.hpp>
#include <translate/model.hpp>
#include <translate/proposers.hpp>

#include <deque>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace translate {

namespace {

using sluice::DenseProjection;
using sluice::example::Transformer;
using sluice::example::Weights;

/// Loads a file with `load`; errors name the file.
template <class Load>
auto load_from(std::filesystem::path const& file, Load const& load) {
  if (!std::filesystem::is_regular_file(file)) throw text::InputError(file.string() + ": no such file");
  try {
    return load(file);
  } catch (std::runtime_error const& error) {
    std::string const what = error.what();
    throw text::InputError(what.find(file.string()) != std::string::npos ? what : file.string() + ": " + what);
  }
}

/// The clusters of one direction.
sluice::Clusters load_clusters(std::filesystem::path const& path, std::string const& direction) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw text::InputError(path.string() + ": cannot be read");
  sluice::ClustersByDirection all;
  try {
    all = sluice::read_clusters(stream);
  } catch (std::runtime_error const& error) {
    throw text::InputError(path.string() + ": " + error.what());
  }
  if (direction.empty() && all.size() == 1) return std::move(all.begin()->second);
  if (auto const found = all.find(direction); found != all.end()) return std::move(found->second);
  std::string names;
  for (auto const& [name, clusters] : all) names += (names.empty() ? "" : ", ") + name;
  throw text::InputError(path.string() + ": has clusters for " + (names.empty() ? "nothing" : names) +
                         (direction.empty() ? ": --direction says which" : ", not for '" + direction + "'"));
}

/// The contents of a model's files, shared by all threads.
struct Files {
  Files(std::filesystem::path const& path, ModelOptions const& options)
      : file(std::filesystem::is_directory(path) ? path / "model.safetensors" : path),
        weights(load_from(file, [&](auto const& from) { return Weights::load(from, options.layers); })),
        projection(weights->projection(), weights->bias, options.output),
        tokenizer(file.parent_path() / "spm.model"),
        transformer{.attached_layer = options.attention ? static_cast<std::int32_t>(weights->decoder.size()) - 1 : -1,
                    .kept_bytes = options.kept_bytes} {
    if (tokenizer.size() != weights->vocabulary.size)
      throw text::InputError("spm.model has " + std::to_string(tokenizer.size()) + " pieces, " + file.string() +
                             " has " + std::to_string(weights->vocabulary.size));
  }

  std::filesystem::path file;
  std::shared_ptr<Weights const> weights;
  DenseProjection projection;
  Tokenizer tokenizer;
  sluice::example::TransformerOptions transformer;
};

std::filesystem::path clusters_of(Files const& files, ModelOptions const& options) {
  return options.clusters.empty() ? files.file.parent_path() / "clusters.bin" : options.clusters;
}

/// The output layer of likely tokens.
sluice::ClusteredProjection clustered(std::filesystem::path const& path, Files const& files,
                                      std::string const& direction, std::int32_t nearest, std::int32_t audit,
                                      std::shared_ptr<sluice::PackedMatrix const> weights) {
  try {
    return {files.weights->projection(),
            files.weights->bias,
            load_clusters(path, direction),
            {.always = files.weights->vocabulary.eos, .nearest = nearest, .audit = audit},
            std::move(weights)};
  } catch (std::invalid_argument const& error) {
    throw text::InputError(path.string() + ": " + error.what());
  }
}

/// Averages of probabilities, and guesses, need the same token to be the same piece.
void check_same(Files const& one, Files const& other) {
  auto const different = other.file.string() + ": has another vocabulary than " + one.file.string() + ": ";
  auto const &a = one.tokenizer, &b = other.tokenizer;
  if (a.size() != b.size())
    throw text::InputError(different + std::to_string(b.size()) + " pieces, not " + std::to_string(a.size()));
  for (sluice::Token token = 0; token < a.size(); ++token)
    if (a.piece(token) != b.piece(token))
      throw text::InputError(different + "piece " + std::to_string(token) + " is '" + b.piece(token) + "', not '" +
                             a.piece(token) + "'");
}

/// A Transformer with its output layer.
struct Part {
  explicit Part(Files const& files) : transformer(files.weights, files.transformer), projection(files.projection) {}
  Part(Part const&) = delete;
  Part& operator=(Part const&) = delete;

  Transformer transformer;
  DenseProjection projection;
  sluice::Projected<Transformer, DenseProjection> scoring{transformer, projection};
};
using Ensemble = sluice::EnsembleOf<sluice::Projected<Transformer, DenseProjection>>;

/// N-grams of pieces, shared by all threads, and how they are added.
struct Language {
  /// \throws text::InputError  if the file is no table, or one of other words than the pieces
  Language(Files const& files, ModelOptions const& options)
      : model(model_of(files, options.language_model)),
        added{.weight = options.language_weight, .word_bonus = options.word_bonus} {
    for (sluice::Token token = 0; token < files.tokenizer.size(); ++token)
      if (files.tokenizer.text(token).starts_with(' ') && token != files.tokenizer.unk()) added.words.push_back(token);
  }

  static sluice::NGramModel<std::monostate> model_of(Files const& files, std::filesystem::path const& path) {
    auto const table = load_from(path, [](auto const& from) { return sluice::NGramTable::open(from.string()); });
    auto const size = files.tokenizer.size();
    std::vector<sluice::Word> words;
    std::int32_t found = 0;
    for (sluice::Token token = 0; token < size; ++token) {
      words.push_back(table.find(files.tokenizer.piece(token)).value_or(-1));
      found += words.back() >= 0 ? 1 : 0;
    }
    if (found < size / 2)
      throw text::InputError(path.string() + ": has " + std::to_string(found) + " of the " + std::to_string(size) +
                             " pieces of spm.model: build_ngram --tokenizer makes one that fits");
    return {table, files.weights->vocabulary, std::move(words)};
  }

  sluice::NGramModel<std::monostate> model;  // copied for each thread
  sluice::FusedOptions added;
};

/// A model that is added to.
template <sluice::Model M>
struct Fusing {
  Fusing(M& whose, Language const& with) : language(with.model), fused(whose, language, with.added) {}
  Fusing(Fusing const&) = delete;
  Fusing& operator=(Fusing const&) = delete;

  sluice::NGramModel<std::monostate> language;
  sluice::Fused<M, sluice::NGramModel<std::monostate>> fused;
};

/// One thread's.
struct Made {
  std::deque<Part> parts;
  std::optional<Ensemble> ensemble;
  std::optional<Fusing<sluice::Projected<Transformer, DenseProjection>>> fusing;
  std::optional<Fusing<Ensemble>> fusing_ensemble;
  std::optional<Heads> heads;
  std::optional<Drafting> drafting;
  std::optional<LookingUp> looking_up;
  std::optional<Remembering> remembering;
};

/// Refers to another model, with the common type of answer.
template <sluice::Model M>
class Answering {
 public:
  using Source = typename M::Source;
  using Encoded = typename M::Encoded;
  using Wrapped = M;

  explicit Answering(M& model) : model_(&model) {}
  sluice::Abilities abilities() const { return sluice::abilities(std::as_const(*model_)); }
  bool encodes() const { return sluice::encodes(std::as_const(*model_)); }
  bool proposes() const { return sluice::proposes(std::as_const(*model_)); }
  decltype(auto) vocabulary() const { return model_->vocabulary(); }
  sluice::Limits limits() const { return model_->limits(); }
  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    model_->start(sources, slots);
  }
  Encoded encode(std::span<Source const* const> sources) const { return std::as_const(*model_).encode(sources); }
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<sluice::Slot const> slots) {
    model_->start(encoded, items, slots);
  }
  Answer step(std::span<sluice::Row const> rows) { return model_->step(rows); }
  void release(std::span<sluice::Slot const> slots) { model_->release(slots); }
  void propose(std::span<sluice::Draft const> drafts) requires sluice::ProposingModel<M> { model_->propose(drafts); }
  void remember(sluice::Decoded const& decoded) requires sluice::RememberingModel<M> { model_->remember(decoded); }
  sluice::Attachments attachments() requires sluice::AttachingModel<M> { return model_->attachments(); }

 private:
  M* model_;
};

}  // namespace

std::filesystem::path default_model() {
  std::error_code ignored;
  auto const executable = std::filesystem::read_symlink("/proc/self/exe", ignored);
  auto const folder = executable.parent_path();
  for (auto const& candidate : {folder / "model", folder / "../share/sluice/model"})
    if (std::filesystem::exists(candidate / "model.safetensors", ignored)) return candidate;
#ifdef SLUICE_EXAMPLE_MODEL
  return SLUICE_EXAMPLE_MODEL;
#else
  return folder / "model";
#endif
}

struct Models::Parts {
  std::deque<Files> files;
  std::optional<Output> output;  // one is copied for each thread
  std::optional<sluice::ResidualHeads> heads;
  std::optional<GuessOutput> guesses;  // of the heads
  std::optional<Files> draft;
  std::optional<Language> language;
  bool ngram = false;
  std::filesystem::path remember;
  std::optional<sluice::SuffixCache> cache;
  std::deque<Made> made;
};

Models::Models(std::vector<std::filesystem::path> const& files, ModelOptions const& options)
    : parts_(std::make_unique<Parts>()) {
  for (auto const& file : files) {
    auto const& last = parts_->files.emplace_back(file, options);
    check_same(parts_->files.front(), last);
  }
  auto const& first = parts_->files.front();
  if (!options.language_model.empty()) parts_->language.emplace(first, options);
  if (files.size() > 1 || parts_->language) {
    parts_->output.emplace(sluice::LogSoftmaxTopK());
  } else if (options.projection == ProjectionName::clustered) {
    parts_->output.emplace(clustered(clusters_of(first, options), first, options.direction, options.nearest,
                                     options.audit, first.projection.weights()));
  } else if (options.projection == ProjectionName::logits) {
    parts_->output.emplace(WholeLogits(first.projection));
  } else {
    parts_->output.emplace(first.projection);
  }
  if (options.proposers.heads) {
    auto const path = options.heads.empty() ? first.file.parent_path() / "heads.safetensors" : options.heads;
    // Guesses are verified: their cost matters, not the last bits.
    constexpr auto rough = sluice::Precision::int8;
    parts_->heads = load_from(path, [&](auto const& file) {
      return sluice::example::load_heads(sluice::example::Safetensors(file), first.weights->d, rough);
    });
    auto const weights =
        options.output == rough
            ? first.projection.weights()
            : std::make_shared<sluice::PackedMatrix const>(first.weights->projection(), first.weights->bias, rough);
    auto const clusters = clusters_of(first, options);
    if (options.clusters.empty() && !std::filesystem::is_regular_file(clusters))
      parts_->guesses.emplace(DenseProjection(weights));
    else parts_->guesses.emplace(clustered(clusters, first, options.direction, 1, 0, weights));
  }
  if (options.proposers.draft) check_same(first, parts_->draft.emplace(options.draft, options));
  parts_->ngram = options.proposers.ngram;
  if (options.remember.empty() && options.remember_tokens == 0) return;
  parts_->remember = options.remember;
  if (options.remember_tokens > 0) parts_->cache.emplace(options.remember_tokens);
  else parts_->cache.emplace();
  std::error_code ignored;
  if (std::filesystem::exists(options.remember, ignored))
    load_from(options.remember, [&](auto const& file) { return parts_->cache->load(file.string()), 0; });
}
Models::~Models() = default;

Tokenizer const& Models::tokenizer() const { return parts_->files.front().tokenizer; }

sluice::Vocabulary const& Models::vocabulary() const { return parts_->files.front().weights->vocabulary; }

Model Models::make() {
  auto& made = parts_->made.emplace_back();
  for (auto const& files : parts_->files) made.parts.emplace_back(files);
  auto& first = made.parts.front();
  auto model = [&] {
    if (parts_->heads) {
      auto& heads = made.heads.emplace(first.transformer, *parts_->heads, *parts_->guesses);
      return Model(Answering(heads.guessing));
    }
    if (made.parts.size() == 1 && parts_->language)
      return Model(Answering(made.fusing.emplace(first.scoring, *parts_->language).fused));
    if (made.parts.size() == 1) return Model(Answering(first.transformer));
    std::vector<sluice::Projected<Transformer, DenseProjection>*> models;
    for (auto& part : made.parts) models.push_back(&part.scoring);
    auto& ensemble = made.ensemble.emplace(models);
    if (parts_->language) return Model(Answering(made.fusing_ensemble.emplace(ensemble, *parts_->language).fused));
    return Model(Answering(ensemble));
  }();
  if (auto const& draft = parts_->draft)
    model = Model(Answering(made.drafting.emplace(std::move(model), draft->weights, draft->projection).guessing));
  if (parts_->ngram) model = Model(Answering(made.looking_up.emplace(std::move(model)).guessing));
  if (parts_->cache) model = Model(Answering(made.remembering.emplace(std::move(model), *parts_->cache).guessing));
  return model;
}

Output Models::output() const { return *parts_->output; }

sluice::SuffixCache const* Models::remembered() const { return parts_->cache ? &*parts_->cache : nullptr; }

void Models::save() {
  if (!parts_->cache || parts_->remember.empty()) return;
  try {
    parts_->cache->save(parts_->remember.string());
  } catch (std::runtime_error const& error) {
    throw text::InputError(error.what());
  }
}

CacheUse Models::cache_use() const {
  CacheUse sum;
  auto const add = [&](Transformer const& transformer) {
    auto const& use = transformer.cache_use();
    sum.pages += use.pages, sum.peak_pages += use.peak, sum.bytes += use.bytes;
  };
  for (auto const& made : parts_->made) {
    for (auto const& part : made.parts) add(part.transformer);
    if (made.drafting) add(made.drafting->draft);
  }
  return sum;
}

}  // namespace translate
