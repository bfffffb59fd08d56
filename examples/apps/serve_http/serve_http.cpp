// SPDX-License-Identifier: Apache-2.0
// serve_http: translations over HTTP, each request with options of its own. docs/http.md says what it answers.

#include <http/detect_endpoint.hpp>
#include <http/service.hpp>
#include <serve_http/options.hpp>
#include <serve_http/page.hpp>
#include <serve_http/trace_endpoint.hpp>
#include <serve_http/translate_endpoint.hpp>
#include <vector>

namespace serve {

namespace {

int run(int argc, char** argv) {
  auto const options = parse(argc, argv);
  if (!options) return 0;
  hold_signals();
  auto const backend = make_translator(options->translator);
  auto const& offer = options->translator.offer;
  auto const translate = [&](House const& house, httplib::Request const& request, httplib::Response& response) {
    answer_translate(house, offer, request, response);
  };
  FairQueue tracing({.pieces = 1, .share = 1});
  auto const trace = [&](House const& house, httplib::Request const& request, httplib::Response& response) {
    answer_trace(house, *backend, tracing, offer, request, response);
  };
  std::vector<Endpoint> own{{"/", false, answer_page}, {"/translate", true, translate}, {"/trace", true, trace}};
  if (offer.watermarking.watermark.on()) own.push_back(detecting(offer.watermarking.watermark));
  return run_service("serve_http", *backend, options->service, own);
}

}  // namespace

}  // namespace serve

int main(int argc, char** argv) {
  return serve::run_program("serve_http", [&] { return serve::run(argc, argv); });
}
