-- Puts a new value in the place of one that was read before, if it is still the same.
--
-- A script, because nobody may have charged the key in between. For what only the gateway can compute: carrying a key's
-- use over to other rules, and an operator's grant, reset, block and unblock. On a conflict the caller reads again.
--
-- KEYS  the key
-- ARGV  the value as it was read, empty when there was none; the new value, empty to delete; its TTL in milliseconds
-- Returns 1 replaced, 0 it is another value now.

local value = redis.pcall('GET', KEYS[1]) or ''
if value ~= ARGV[1] then
    return 0
end
if ARGV[2] == '' then
    redis.call('DEL', KEYS[1])
else
    redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1
