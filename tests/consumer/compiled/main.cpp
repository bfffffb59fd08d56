// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>

std::string by_headers();
std::string by_library();

int main() {
  auto const expected = by_headers(), found = by_library();
  std::cout << expected;
  if (found == expected) return 0;
  std::cout << "the library:\n" << found;
  return 1;
}
