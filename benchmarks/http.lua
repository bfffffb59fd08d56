-- SPDX-License-Identifier: Apache-2.0
-- For wrk (benchmarks/tables/http-table): posts the lines of the file SENTENCES in turn, one a request, from any of them on.
local sentences, at = {}, 0

function init(arguments)
  for line in io.lines(os.getenv("SENTENCES")) do
    local text = line:gsub("[%c\"\\]", " ")
    if text:find("%S") then sentences[#sentences + 1] = '{"search":"greedy","text":"' .. text .. '"}' end
  end
  math.randomseed(os.time())
  at = math.random(#sentences)
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  at = at % #sentences + 1
  return wrk.format(nil, "/translate", nil, sentences[at])
end

function done(summary, latency)
  io.write(string.format("RESULT %.1f %.1f %.1f %d %d\n", summary.requests / summary.duration * 1e6, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3, summary.requests,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status + summary.errors.timeout))
end
