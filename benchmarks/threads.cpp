// SPDX-License-Identifier: Apache-2.0
// What the locks of translate's input and output cost, by the number of threads. See docs/threads.md.

#include "simulation/threads.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <iostream>
#include <vector>

namespace {

using namespace simulation;

double rate(Queue const& queue, Queued const& done) { return queue.sentences / done.total; }

/// Of what the threads could have done if none ever waited, in per cent.
double kept(Queue const& queue, Queued const& done) {
  return 100 * rate(queue, done) * queue.work() / static_cast<double>(queue.threads);
}

/// Checks the simulation: seconds add up, a single thread never waits, and no number of threads is faster than the threads
/// are alone, or than the locks let through.
int check(Queue q) {
  q.sentences = 5e4;
  auto wrong = 0;
  auto const must = [&](bool good, char const* what) {
    if (!good)
      std::printf("wrong: %s (%zu threads, %s)\n", what, q.threads, q.locked ? "locked" : "not locked"), ++wrong;
  };
  for (auto const locked : {false, true})
    for (auto const threads : {1, 2, 16, 128, 1024}) {
      q.locked = locked, q.threads = static_cast<std::size_t>(threads);
      auto const done = work_off(q);
      must(std::abs(done.work + done.waiting + done.idle - threads * done.total) < 1e-6 * threads * done.total,
           "the sum");
      must(threads > 1 || (done.waiting == 0 && done.idle == 0), "one thread waits for nobody");
      // What is drawn has a mean of its own: 0.57 / sqrt(50000) is 0.25 %.
      must(rate(q, done) < 1.02 * std::min(threads / q.work(), q.limit()), "faster than can be");
      auto const demand = threads / q.work() / q.limit();
      must(demand < 10 || rate(q, done) > 0.9 * q.limit(), "a lock in demand is never free");
      must(demand > 0.1 || kept(q, done) > 90, "a lock that is free costs nothing");
    }
  return wrong > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Queue q;
  std::vector<std::size_t> threads{1, 2, 4, 8, 16, 32, 64, 128};
  bool checking = false;
  CLI::App app("What threads wait for that share the input and the output of a program, in virtual time.", "threads");
  app.add_option("--threads", threads, "how many (1,2,4,8,16,32,64,128)")->delimiter(',');
  app.add_option("--sentences", q.sentences, "of all threads together (1e6)");
  app.add_option("--taken", q.taken, "lines that a thread takes at once (4096)");
  app.add_option("--decode", q.decode, "seconds of a sentence in one thread (0.01)");
  app.add_option("--variation", q.variation, "of a sentence's time: deviation / mean (0.57)");
  app.add_option("--read", q.read, "seconds of a line under the input's lock (5e-7)");
  app.add_option("--prepare", q.prepare, "seconds to make a line a sentence (1e-5)");
  app.add_option("--format", q.format, "seconds to make a result a text (5e-6)");
  app.add_option("--write", q.write, "seconds of a result under the output's lock (1e-6)");
  app.add_option("--seed", q.seed, "of all that is drawn (1)");
  app.add_flag("--check", checking, "look whether the numbers agree with each other, and nothing else");
  try {
    app.parse(argc, argv);
    if (checking) return check(q);
    std::printf("%8s %34s %34s\n", "", "prepared and formatted outside", "under the locks");
    std::printf("%8s %14s %9s %9s %14s %9s %9s\n", "threads", "sentences/s", "kept %", "waiting %", "sentences/s",
                "kept %", "waiting %");
    for (auto const count : threads) {
      q.threads = count;
      std::printf("%8zu", count);
      for (auto const locked : {false, true}) {
        q.locked = locked;
        auto const done = work_off(q);
        std::printf(" %14.0f %9.1f %9.1f", rate(q, done), kept(q, done),
                    100 * done.waiting / done.total / static_cast<double>(count));
      }
      std::printf("\n");
    }
    for (auto const locked : {false, true}) {
      q.locked = locked;
      std::printf("%s the locks let through %.0f sentences a second\n", locked ? "under them," : "outside,", q.limit());
    }
  } catch (CLI::ParseError const& error) {
    return app.exit(error);
  } catch (std::exception const& error) {
    std::cerr << "threads: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
