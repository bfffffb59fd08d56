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
#include <http/memory.hpp>
#include <http/metrics.hpp>
#include <http/service.hpp>
#include <new>
#include <pthread.h>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

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
  } catch (OverBudget const& over) {
    std::string const field = over.field;
    if (over.together)
      send_error(response, 503, "the requests take " + megabytes(over.most) + " together; try again later");
    else
      send_error(response, 413,
                 (field.empty() ? "the request" : field) + " takes more than is left of the request's " +
                     megabytes(over.most),
                 field);
  } catch (std::bad_alloc const&) {
    send_error(response, 503, "the server has no memory left");
  } catch (std::system_error const& error) {  // no threads, no files
    send_error(response, 503, error.what());
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
    Account::Counting const uncounted(nullptr);
    house.metrics.request(path, response.status, Clock::now() - Connection::current()->began());
  });
  listener.set_refusal_logger(
      [&house](int status, Clock::duration took) { house.metrics.request("other", status, took); });

  listener.Get("/health",
               [&house](httplib::Request const&, httplib::Response& response) { answer_health(house, response); });
  listener.Get("/metrics", [&house](httplib::Request const&, httplib::Response& response) {
    response.set_content(house.metrics.write(house.backend, house.admission, house.memory),
                         "text/plain; version=0.0.4");
  });
  listener.Get("/v1/models",
               [&house](httplib::Request const&, httplib::Response& response) { answer_models(house, "", response); });
  listener.Get("/v1/models/(.+)", [&house](httplib::Request const& request, httplib::Response& response) {
    answer_models(house, request.matches[1], response);
  });
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

/// Waits for a signal, then refuses new requests and waits for the last answer, which comes within `longest`. A second signal
/// exits at once, whatever the server is doing.
void end_gracefully(std::string const& program, sigset_t const& signals, Listener& listener, Admission& admission,
                    Clock::duration longest, std::atomic<bool> const& over) {
  timespec const moment{.tv_sec = 0, .tv_nsec = 20'000'000};
  while (sigtimedwait(&signals, nullptr, &moment) < 0)
    if (over) return;
  admission.close();
  std::fprintf(stderr, "%s: closing; %zu requests to answer\n", program.c_str(), admission.requests());
  auto const until = Clock::now() + longest;
  auto ended = false;
  while (!over) {
    if (sigtimedwait(&signals, nullptr, &moment) >= 0) _exit(1);
    if (!ended && admission.requests() == 0) ended = true, listener.end();
    if (Clock::now() < until) continue;
    std::fprintf(stderr, "%s: %zu requests are not answered\n", program.c_str(), admission.requests());
    _exit(1);
  }
}

/// Of threads that are made from now on: there is one for each connection, and it needs little.
void small_stacks() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{1} << 20);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

/// A thread that ends with this object, even if an exception ends the other one.
class Ending {
 public:
  template <class F>
  explicit Ending(F&& f) : thread_([f = std::forward<F>(f), this] { f(over_); }) {}
  ~Ending() { over_ = true, thread_.join(); }
  Ending(Ending const&) = delete;
  Ending& operator=(Ending const&) = delete;

 private:
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

}  // namespace

int run_service(std::string const& program, Backend& backend, ServiceOptions const& options,
                std::vector<Endpoint> const& own) {
  sigset_t const signals = ending();
  auto bounds = options.bounds;
  auto const most = options.queue + backend.size();
  bounds.sentences = std::min(bounds.sentences, most);                     // more would never be admitted
  Admission admission(most, std::max(most - most / 4, bounds.sentences));  // there is room for another client
  auto const processors = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  FairQueue preparing({.pieces = processors + 1, .share = processors});
  FairQueue decoding({.pieces = backend.size(),
                      .share = options.share > 0 ? options.share : std::max<std::size_t>(1, backend.size() / 2),
                      .express = backend.express_rows()});
  MemoryPool memory(options.memory);
  Metrics metrics;
  House const house{backend, admission, preparing, decoding, memory, metrics, bounds};
  auto const local = options.address.starts_with("127.") || options.address == "::1" || options.address == "localhost";
  Guard const guard(admission, options.tokens, local);
  Listener listener(options.patience, {options.connections, options.request_memory}, memory);
  set_up(listener, guard, house, own);
  auto const port = listener.bind(options.address, options.port);
  small_stacks();
  auto const longest = bounds.time + options.patience.read + options.patience.write + std::chrono::seconds(2);
  Ending const ending(
      [&](std::atomic<bool> const& over) { end_gracefully(program, signals, listener, admission, longest, over); });
  std::printf("%s: http://%s:%d/\n", program.c_str(), options.address.c_str(), port);
  std::fflush(stdout);
  listener.serve();
  backend.save();
  return 0;
}

void hold_signals() {
  auto const signals = ending();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

int run_program(std::string const& program, std::function<int()> const& run) {
  spare_memory();
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
