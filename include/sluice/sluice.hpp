// SPDX-License-Identifier: Apache-2.0
/// \file
/// What most programs use: a model, decode and Decoder, schedules, greedy and beam search, sampling. Everything else has its own
/// header, in the folder of its subject; sluice/all.hpp brings nearly all of them and takes twice as long to read.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
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
