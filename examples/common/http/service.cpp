// SPDX-License-Identifier: Apache-2.0
#include <text/lines.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <http/answers.hpp>
#include <http/completions_endpoint.hpp>
#include <http/guard.hpp>
#include <http/listener.hpp>
#include <http/metrics.hpp>
#include <http/service.hpp>
#include <set>
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace serve {

namespace {

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
    response.status = 499;  // the client is gone; the metrics count it
  } catch (std::exception const& error) {
    send_error(response, 500, error.what());
  }
}

httplib::Server::Handler handler(House const& house, Endpoint::Answer const& answer) {
  return [&house, answer](httplib::Request const& request, httplib::Response& response) {
    auto* const connection = Connection::current();
    connection->end_body();
    if (request.body.size() > connection->most_body()) throw BadField("", "the body is too large", 413);  // of chunks
    answer(house, request, response);
  };
}

void set_up(Listener& listener, Guard const& guard, House const& house, std::vector<Endpoint> const& own) {
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
  std::set<std::string> paths{"/health", "/metrics", "/v1/completions", "/v1/models"};
  for (auto const& one : own) paths.insert(one.path);
  listener.set_logger([&house, paths](httplib::Request const& request, httplib::Response const& response) {
    auto const& path = paths.contains(request.path) ? request.path : "other";
    house.metrics.request(path, response.status, Clock::now() - Connection::current()->began());
  });

  listener.Get("/health",
               [&house](httplib::Request const&, httplib::Response& response) { answer_health(house, response); });
  listener.Get("/metrics", [&house](httplib::Request const&, httplib::Response& response) {
    response.set_content(house.metrics.write(house.backend, house.admission), "text/plain; version=0.0.4");
  });
  listener.Get("/v1/models",
               [&house](httplib::Request const&, httplib::Response& response) { answer_models(house, response); });
  listener.Post("/v1/completions", handler(house, answer_completions));
  for (auto const& one : own) {
    if (one.posts) listener.Post(one.path, handler(house, one.answer));
    else
      listener.Get(one.path,
                   [&house, answer = one.answer](httplib::Request const& request, httplib::Response& response) {
                     answer(house, request, response);
                   });
  }
}

/// The signals that end a server.
sigset_t ending() {
  sigset_t signals;
  sigemptyset(&signals), sigaddset(&signals, SIGTERM), sigaddset(&signals, SIGINT);
  return signals;
}

/// Waits for a signal, then refuses new requests and waits for the last answer. A second signal exits at once.
void end_gracefully(std::string const& program, sigset_t const& signals, Listener& listener, Admission& admission,
                    std::atomic<bool> const& over) {
  timespec const moment{.tv_sec = 0, .tv_nsec = 50'000'000};
  while (sigtimedwait(&signals, nullptr, &moment) < 0)
    if (over) return;
  admission.close();
  std::fprintf(stderr, "%s: closing; %zu requests to answer\n", program.c_str(), admission.requests());
  while (admission.requests() > 0)
    if (sigtimedwait(&signals, nullptr, &moment) >= 0) _exit(1);
  listener.end();
}

}  // namespace

int run_service(std::string const& program, Backend& backend, ServiceOptions const& options,
                std::vector<Endpoint> const& own) {
  sigset_t const signals = ending();
  Admission admission(options.queue + backend.size());
  Metrics metrics;
  auto bounds = options.bounds;
  bounds.sentences = std::min(bounds.sentences, admission.most());  // more would never be admitted
  House const house{backend, admission, metrics, bounds};
  auto const local = options.address.starts_with("127.") || options.address == "::1" || options.address == "localhost";
  Guard const guard(admission, options.token, local);
  Listener listener(options.patience, options.connections);
  set_up(listener, guard, house, own);
  auto const port = listener.bind(options.address, options.port);
  std::atomic<bool> over = false;
  std::thread signalled([&] { end_gracefully(program, signals, listener, admission, over); });
  std::printf("%s: http://%s:%d/\n", program.c_str(), options.address.c_str(), port);
  std::fflush(stdout);
  listener.serve();
  over = true;
  signalled.join();
  return 0;
}

void hold_signals() {
  auto const signals = ending();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

int run_program(std::string const& program, std::function<int()> const& run) {
  auto const complain = [&](std::exception const& error, int code) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), error.what());
    return code;
  };
  try {
    return run();
  } catch (text::InputError const& error) {
    return complain(error, 2);
  } catch (std::invalid_argument const& error) {
    return complain(error, 2);
  } catch (std::exception const& error) {
    return complain(error, 1);
  }
}

}  // namespace serve
