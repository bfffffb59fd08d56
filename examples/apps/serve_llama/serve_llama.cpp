// SPDX-License-Identifier: Apache-2.0
// serve_llama: any language model that llama.cpp loads, in OpenAI's shape. docs/http.md says what it answers.

#include <http/completions_endpoint.hpp>
#include <http/detect_endpoint.hpp>
#include <http/service.hpp>
#include <http/template_endpoint.hpp>
#include <serve_llama/options.hpp>
#include <vector>

namespace serve {

namespace {

int run(int argc, char** argv) {
  auto const options = parse_llama(argc, argv);
  if (!options) return 0;
  hold_signals();
  auto const backend = make_continuer(options->continuer);
  auto const& watermark = options->continuer.offer.watermarking.watermark;
  std::vector<Endpoint> own{chatting(), templating()};
  if (watermark.on()) own.push_back(detecting(watermark));
  return run_service("serve_llama", *backend, options->service, own);
}

}  // namespace

}  // namespace serve

int main(int argc, char** argv) {
  return serve::run_program("serve_llama", [&] { return serve::run(argc, argv); });
}
