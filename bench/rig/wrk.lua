-- Asks for paths of a file at random, or posts what follows a path and a space; waits WRK_WAIT milliseconds between the
-- requests of a connection, on average; tells the result as JSON.

local wait = tonumber(os.getenv("WRK_WAIT")) or 0
local threads = 0

function setup(thread)
  thread:set("seed", threads)
  threads = threads + 1
end

function init()
  math.randomseed(1000 + seed)
  requests = {}
  for line in io.lines(os.getenv("WRK_PATHS")) do
    local path, body = line:match("^(%S+) (.+)$")
    if body then
      requests[#requests + 1] = wrk.format("POST", path, { ["Content-Type"] = "application/json" }, body)
    else
      requests[#requests + 1] = wrk.format("GET", line)
    end
  end
end

function request()
  return requests[math.random(#requests)]
end

if wait > 0 then
  function delay()
    -- Whole milliseconds, between nothing and twice the average: connections that
    -- keep step would ask all at once.
    local exact = math.random() * 2 * wait
    local whole = math.floor(exact)
    if math.random() < exact - whole then whole = whole + 1 end
    return whole
  end
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"rate":%.3f,"requests":%d,"errors":%d,"p50":%.4f,"p99":%.4f}\n',
    summary.requests / (summary.duration / 1e6), summary.requests,
    e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
