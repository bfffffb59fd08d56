// SPDX-License-Identifier: Apache-2.0
// The header of a C++17 code base: nothing of sluice in it. Its own model interface, and what it wants done.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace app {

// A model as this code base has always had it: states by number, one token at a time.
class Model {
 public:
  virtual ~Model() = default;
  virtual int vocabulary_size() const = 0;
  virtual int end_token() const = 0;
  virtual void begin(int state, std::string const& source) = 0;
  virtual void copy(int from, int to) = 0;
  virtual std::vector<float> next(int state, int token) = 0;  // logits
};

struct Translation {
  std::vector<int> tokens;
  double score;
};

std::vector<Translation> translate(Model& model, std::vector<std::string> const& sources, int beam);

}  // namespace app
