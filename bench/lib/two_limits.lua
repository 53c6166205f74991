-- The same two rules for nginx + Lua + Redis: a token bucket and a fixed window in one hash, one EVALSHA per request.
-- KEYS[1]: the counter. ARGV: tokens per second, capacity, requests per day.
-- Returns {1 when admitted, tokens left, requests left today}.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local v = redis.call('HMGET', KEYS[1], 'tokens', 'at', 'count', 'window')
local rate, burst, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local tokens = math.min(burst, (tonumber(v[1]) or burst) + (now - (tonumber(v[2]) or now)) * rate / 1000000)
local window = now - now % 86400000000
local count = tonumber(v[4]) == window and tonumber(v[3]) or 0
if tokens < 1 or count + 1 > limit then
  return {0, math.floor(tokens), limit - count}
end
redis.call('HMSET', KEYS[1], 'tokens', tostring(tokens - 1), 'at', tostring(now), 'count', count + 1, 'window', tostring(window))
redis.call('PEXPIRE', KEYS[1], 86400000)
return {1, math.floor(tokens - 1), limit - count - 1}
