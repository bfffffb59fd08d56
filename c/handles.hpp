// SPDX-License-Identifier: Apache-2.0
/// \file
/// Handles of the C interface that several source files use.
#pragma once

#include <sluice/c/sluice.h>
#include <sluice/catalogue/catalogue.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/search/bias/bias.hpp>

#include "model.hpp"
#include "options.hpp"

struct sluice_model {
  sluice::c::LookingModel held;
  sluice::AnyModel<void const*> model;  // refers to it
  void (*destroy)(void*);
  void* user;
  sluice::TokenTrie tokens{};  // empty: the tokens' bytes have not been given
};

struct sluice_grammar {
  sluice::Structure structure;
};

struct sluice_catalogue {
  sluice::Catalogue catalogue;
};

struct sluice_bias {
  sluice::Bias bias;
};

struct sluice_search {
  sluice::c::SearchOptions options;
};
