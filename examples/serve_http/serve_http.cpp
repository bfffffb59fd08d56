// SPDX-License-Identifier: Apache-2.0
// serve_http: translations over HTTP, each request with options of its own. docs/http.md says what it answers.

#include <text/lines.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <random>
#include <serve_http/admission.hpp>
#include <serve_http/answers.hpp>
#include <serve_http/completions_endpoint.hpp>
#include <serve_http/guard.hpp>
#include <serve_http/listener.hpp>
#include <serve_http/metrics.hpp>
#include <serve_http/options.hpp>
#include <serve_http/page.hpp>
#include <serve_http/translate_endpoint.hpp>
#include <string>
#include <thread>
#include <unistd.h>

namespace serve {

namespace {

/// A number that nobody can guess.
std::string nonce() {
  std::random_device random;
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%08x%08x%08x%08x", random(), random(), random(), random());
  return text.data();
}

void answer_page(httplib::Response& response) {
  auto const once = nonce();
  std::string html(page);
  for (std::size_t at = 0; (at = html.find("NONCE", at)) != html.npos;) html.replace(at, 5, once);
  response.set_header("Content-Security-Policy", "default-src 'none'; script-src 'nonce-" + once +
                                                     "'; style-src 'nonce-" + once +
                                                     "'; connect-src 'self'; img-src data:; base-uri 'none'; "
                                                     "form-action 'none'; frame-ancestors 'none'");
  response.set_content(html, "text/html; charset=utf-8");
}

void answer_health(House const& house, httplib::Response& response) {
  auto const closing = house.admission.closed();
  send(response, closing ? 503 : 200,
       {{"status", closing ? "closing" : "ok"}, {"sentences_open", house.admission.sentences()}});
}

/// What an endpoint throws, as a response.
void explain(std::exception_ptr const& problem, httplib::Response& response) {
  try {
    std::rethrow_exception(problem);
  } catch (BadField const& bad) {
    send_error(response, bad.status, bad.what(), bad.field);
  } catch (Refused const& refused) {
    send_error(response, refused.status, refused.what());
  } catch (Gone const&) {
    response.status = 499;  // nobody reads it; the metrics count it
  } catch (std::exception const& error) {
    send_error(response, 500, error.what());
  }
}

template <class Endpoint>
httplib::Server::Handler handler(House const& house, Endpoint const& endpoint) {
  return [&house, endpoint](httplib::Request const& request, httplib::Response& response) {
    auto* const connection = Connection::current();
    connection->end_body();
    if (request.body.size() > connection->most_body()) throw BadField("", "the body is too large", 413);  // of chunks
    endpoint(house, request, response);
  };
}

void set_up(Listener& listener, Guard const& guard, House const& house) {
  using Response = httplib::Server::HandlerResponse;
  listener.set_pre_routing_handler([&guard](httplib::Request const& request, httplib::Response& response) {
    return guard.refuses(request, response) ? Response::Handled : Response::Unhandled;
  });
  listener.set_error_handler(httplib::Server::Handler(Guard::explain));
  listener.set_exception_handler([](httplib::Request const&, httplib::Response& response, std::exception_ptr problem) {
    explain(problem, response);
  });
  listener.set_post_routing_handler(
      [](httplib::Request const&, httplib::Response& response) { Guard::protect(response); });
  listener.set_logger([&house](httplib::Request const& request, httplib::Response const& response) {
    auto const& path = request.path;
    auto known = false;
    for (auto const* one : {"/", "/health", "/metrics", "/translate", "/v1/completions", "/v1/models"})
      known = known || path == one;
    house.metrics.request(known ? path : "other", response.status, Clock::now() - Connection::current()->began());
  });

  listener.Get("/", [](httplib::Request const&, httplib::Response& response) { answer_page(response); });
  listener.Get("/health",
               [&house](httplib::Request const&, httplib::Response& response) { answer_health(house, response); });
  listener.Get("/metrics", [&house](httplib::Request const&, httplib::Response& response) {
    response.set_content(house.metrics.write(house.backend, house.admission), "text/plain; version=0.0.4");
  });
  listener.Get("/v1/models",
               [&house](httplib::Request const&, httplib::Response& response) { answer_models(house, response); });
  listener.Post("/translate", handler(house, answer_translate));
  listener.Post("/v1/completions", handler(house, answer_completions));
}

/// Waits for a signal to end: nobody new, then the last answer. A second signal does not wait.
void end_gracefully(sigset_t const& signals, Listener& listener, Admission& admission, std::atomic<bool> const& over) {
  timespec const moment{.tv_sec = 0, .tv_nsec = 50'000'000};
  while (sigtimedwait(&signals, nullptr, &moment) < 0)
    if (over) return;
  admission.close();
  std::fprintf(stderr, "serve_http: closing; %zu requests to answer\n", admission.requests());
  while (admission.requests() > 0)
    if (sigtimedwait(&signals, nullptr, &moment) >= 0) _exit(1);
  listener.end();
}

int run(Options const& options) {
  sigset_t signals;
  sigemptyset(&signals), sigaddset(&signals, SIGTERM), sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before there are threads, which inherit it
  std::signal(SIGPIPE, SIG_IGN);

  auto const backend = make_translator(options.translator);
  Admission admission(options.translator.queue + backend->size());
  Metrics metrics;
  auto bounds = options.bounds;
  bounds.sentences = std::min(bounds.sentences, admission.most());  // more would never be let in
  House const house{*backend, admission, metrics, bounds};
  auto const local = options.address.starts_with("127.") || options.address == "::1" || options.address == "localhost";
  Guard const guard(admission, options.token, local);
  Listener listener(options.patience, options.connections);
  set_up(listener, guard, house);
  auto const port = listener.bind(options.address, options.port);
  std::atomic<bool> over = false;
  std::thread signalled([&] { end_gracefully(signals, listener, admission, over); });
  std::printf("serve_http: http://%s:%d/\n", options.address.c_str(), port);
  std::fflush(stdout);
  listener.serve();
  over = true;
  signalled.join();
  return 0;
}

}  // namespace

}  // namespace serve

int main(int argc, char** argv) {
  auto const complain = [](std::exception const& error, int code) {
    std::fprintf(stderr, "serve_http: %s\n", error.what());
    return code;
  };
  try {
    auto const options = serve::parse(argc, argv);
    return options ? serve::run(*options) : 0;
  } catch (text::InputError const& error) {
    return complain(error, 2);
  } catch (std::invalid_argument const& error) {
    return complain(error, 2);
  } catch (std::exception const& error) {
    return complain(error, 1);
  }
}
