// SPDX-License-Identifier: Apache-2.0
// translate: text in, text out, with every search and schedule of the library.

#include <text/lines.hpp>
#include <translate/decoders.hpp>
#include <translate/options.hpp>
#include <translate/translation.hpp>

#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>

namespace translate {

std::unique_ptr<Decoders> make_decoders(Options const& options, Models& models, Masks const& masks) {
  switch (options.search) {
    case SearchName::greedy: return make_greedy(options, models, masks);
    case SearchName::sample: return make_sample(options, models, masks);
    case SearchName::blockwise: return make_blockwise(options, models, masks);
    case SearchName::score: return make_score(options, models);
    case SearchName::beam: break;
  }
  return options.constrained() ? make_constrained(options, models, masks) : make_beam(options, models, masks);
}

}  // namespace translate

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  auto const complain = [](std::exception const& error, translate::Code code) {
    std::cerr << "translate: " << error.what() << '\n';
    return code;
  };
  try {
    auto options = translate::parse(argc, argv);
    if (!options) return translate::fine;
    translate::Resources resources(*options);
    if (!options->window) options->window = resources.input.window(options->batch);
    auto const decoders = translate::make_decoders(*options, resources.models, resources.masks);
    return translate::Translation(*options, resources, *decoders).run();
  } catch (text::InputError const& error) {
    return complain(error, translate::bad_input);
  } catch (std::invalid_argument const& error) {
    return complain(error, translate::bad_input);
  } catch (std::exception const& error) {
    return complain(error, translate::sentence_failed);
  }
}
