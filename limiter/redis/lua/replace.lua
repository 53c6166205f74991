-- Replaces a value that was read before, if it has not changed since.
--
-- A script, because the comparison and the write must be one step. For changes that only the gateway can compute:
-- converting a key's counters to other rules, and an operator's grant, reset, block and unblock. On a conflict the caller
-- reads the value again.
--
-- KEYS  the key
-- ARGV  the value as it was read, empty when there was none; the new value, empty to delete; its TTL in milliseconds
-- Returns 1 replaced, 0 the value has changed; or Redis's error, when the key cannot be read for another reason than its
-- type.

local value = redis.pcall('GET', KEYS[1]) or ''
if type(value) == 'table' and string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then
    return value
end
if value ~= ARGV[1] then
    return 0
end
if ARGV[2] == '' then
    redis.call('DEL', KEYS[1])
else
    redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1
