// SPDX-License-Identifier: Apache-2.0
/// \file
/// Destructors that are compiled only where an object is destroyed.
#pragma once

#include <sluice/language.hpp>

namespace sluice::inline v0::detail {

/// The last member of an Owner without a destructor: calls its end() before any other member is destroyed. A destructor
/// cannot be a template, so what it called would be compiled by every file that includes its header.
template <class Owner>
class AtEnd {
 public:
  explicit AtEnd(Owner& owner) : owner_(owner) {}
  AtEnd(AtEnd const&) = delete;
  AtEnd& operator=(AtEnd const&) = delete;
  ~AtEnd() { owner_.end(); }

 private:
  Owner& owner_;
};

}  // namespace sluice::inline v0::detail
