// SPDX-License-Identifier: Apache-2.0
// The output of translate for a sentence.
#include <text/lines.hpp>
#include <translate/alignment.hpp>
#include <translate/confidence.hpp>
#include <translate/mbr.hpp>
#include <translate/translation.hpp>

#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace translate {

namespace {

std::string list(std::vector<std::string> const& parts) {
  std::string all;
  for (auto const& part : parts) all.append(all.empty() ? "" : ", ").append(part);
  return all;
}

std::string format(double score) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6f", score);
  return text;
}

}  // namespace

Finished Translation::format(std::size_t number, sluice::Result const& result, Due const& due) const {
  Finished line;
  auto& out = line.text;
  auto const& hypotheses = result.hypotheses;
  if (!result.ok() || hypotheses.empty()) {
    line.complain(sentence_failed,
                  resources_.input.where(number) + sluice::name(result.failure) + ": " + result.message);
  } else if (options_.search == SearchName::score) {
    out = translate::format(hypotheses.front().score);
  } else if (options_.explain) {
    out = explain(hypotheses.front(), resources_.models.tokenizer());
  } else if (options_.list) {
    judge(number, due.constraints, text_of(hypotheses.front()), line);  // where this is complete, so are the others
    for (auto const& hypothesis : hypotheses)
      out.append(out.empty() ? "" : "\n")
          .append(std::to_string(number - 1) + " ||| " + text_of(hypothesis) + " ||| ")
          .append(translate::format(hypothesis.score) + details(hypothesis, due));
  } else if (options_.mbr) {
    auto const& best = least_risk(options_, hypotheses, [&](auto const& hypothesis) { return text_of(hypothesis); });
    out = text_of(best);
    judge(number, due.constraints, out, line);
    out += details(best, due);
  } else {
    out = text_of(hypotheses.front());
    judge(number, due.constraints, out, line);
    out += details(hypotheses.front(), due);
  }
  out += '\n';
  return line;
}

std::string Translation::details(sluice::Hypothesis const& hypothesis, Due const& due) const {
  auto const& tokenizer = resources_.models.tokenizer();
  std::string all;
  if (options_.alignments) all += " ||| " + alignment_of(hypothesis, due.source_words, tokenizer, *options_.alignments);
  if (options_.confidence) all += " ||| " + confidence_of(hypothesis, tokenizer);
  if (options_.alternatives > 0) all += " ||| " + alternatives_of(hypothesis, tokenizer);
  return all;
}

void Translation::judge(std::size_t number, WholeWords const& constraints, std::string const& text,
                        Finished& line) const {
  auto const verdict = constraints.judge(text);
  auto const where = resources_.input.where(number);
  if (verdict.met < verdict.total)
    line.complain(sentence_failed, where + std::to_string(verdict.met) + " of " + std::to_string(verdict.total) +
                                       " constraints are met, not " + list(verdict.missing));
  if (!verdict.forbidden.empty())
    line.complain(sentence_failed, where + "holds what is forbidden: " + list(verdict.forbidden));
}

std::string Translation::text_of(sluice::Hypothesis const& hypothesis) const {
  auto const& tokenizer = resources_.models.tokenizer();
  std::span<sluice::Token const> tokens(hypothesis.tokens);
  if (!tokens.empty() && tokens.back() == tokenizer.eos()) tokens = tokens.first(tokens.size() - 1);
  return tokenizer.decode(tokens);
}

}  // namespace translate
