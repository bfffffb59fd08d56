// SPDX-License-Identifier: Apache-2.0
/// \file
/// Everything but model/checked.hpp (for tests of a model), grammar/ (large to read), catalogue/, ngram/ and speculative/suffix_cache.hpp (map
/// files), frames/ (for models that score frames), engine/ (needs the engines' headers) and c/. With the compiled library (SLUICE_COMPILED) only what most programs use, which takes half the time
/// to read; everything else by its own header, or SLUICE_WHOLE is defined, too.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/version.hpp>

#if !defined(SLUICE_COMPILED) || defined(SLUICE_WHOLE)
#include <sluice/core/noise.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/schedule.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/core/trace.hpp>
#include <sluice/decode/server.hpp>
#include <sluice/decode/server_options.hpp>
#include <sluice/decode/trace_each.hpp>
#include <sluice/decode/trace_file.hpp>
#include <sluice/decode/trace_page.hpp>
#include <sluice/deprecated.hpp>
#include <sluice/model/ensemble.hpp>
#include <sluice/model/fused.hpp>
#include <sluice/model/paged_cache.hpp>
#include <sluice/model/projected.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/output/aligned_vector.hpp>
#include <sluice/output/clustered_projection.hpp>
#include <sluice/output/clusters.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/instruction_set.hpp>
#include <sluice/output/k_means.hpp>
#include <sluice/output/line_lists.hpp>
#include <sluice/output/packed_matrix.hpp>
#include <sluice/output/precision.hpp>
#include <sluice/output/shortlist_projection.hpp>
#include <sluice/output/train_clusters.hpp>
#include <sluice/processor/dry.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/logits_processor.hpp>
#include <sluice/processor/one_of.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/phrase.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/result/alignment.hpp>
#include <sluice/result/commitment.hpp>
#include <sluice/result/minimum_bayes_risk.hpp>
#include <sluice/result/semantic_entropy.hpp>
#include <sluice/search/beam_options.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/exact_search.hpp>
#include <sluice/search/history.hpp>
#include <sluice/search/length.hpp>
#include <sluice/search/particle_sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/acceptance.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/heads.hpp>
#include <sluice/speculative/prompt_lookup.hpp>
#include <sluice/speculative/speculated.hpp>
#include <sluice/watermark/detect_watermark.hpp>
#include <sluice/watermark/watermark.hpp>
#endif
