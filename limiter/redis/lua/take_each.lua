-- Decides and charges the usual chain for many keys in one call, each key independently of the others.
--
-- A script, because reading, deciding and charging a key must be one step, by one clock. One call for all keys of a batch,
-- because calling a script and reading the clock cost Redis as much as a decision does. The usual chain: one key, one or
-- two rules, all of them buckets and windows that enforce and start full, every cost above 0. Unusual values are left to
-- take.lua, which also documents the layout of values and why the arithmetic is exact.
--
-- KEYS  all under the same rules, at the same costs. A key may occur twice: the second is decided after the first.
-- ARGV  byte rules; byte numbers of a value; a byte per rule = kind; then 7-byte numbers: the fingerprint, and for each
--       rule the numbers that take.lua documents for its kind, 1 to 4
-- Returns an array, for each key the text that take.lua would return for it, with status 0, 1 or 2; or
--         6 unusual   byte 0: the value has to be decided by take.lua; nothing was decided here
-- Nothing is written when nothing changes. A written value has a TTL after which it has recovered.

local time = redis.call('TIME') local now = time[1] * 1000000 + time[2]

local MARGIN, LONGEST = 10000, 315360000000 -- milliseconds: ten seconds, ten years
local KEYS, arg, call, pcall = KEYS, ARGV[1], redis.call, redis.pcall
local read, write, sub = struct.unpack, struct.pack, string.sub

-- Returns a rule's state after the charge; nothing when the cost does not fit, false when the time is in neither window.
local function charged(kind, u, v, now, a, b, c, d, e)
    if kind == 1 then
        if u < now then
            u, v = now, 0
        end
        u, v = u + b, v + c
        if v >= a then
            u, v = u + 1, v - a
        end
        if u < now + d or u == now + d and v <= e then
            return u, v
        end
    elseif u > now then
        if v + a <= b then
            return u, v + a
        end
    elseif a <= b then
        if kind == 2 then
            return now - now % c + c, a
        elseif kind == 3 then
            return now + c, a
        elseif now < c or now >= e then
            return false
        end
        return now < d and d or e, a
    end
end

local rules, count, kind, other_kind = string.byte(arg, 1, 4)
local two = rules == 2
local rule, a, b, c, d, e, f, g, h, i, j =
    read(sub('<I7I7I7I7I7I7I7I7I7I7I7', 1, (#arg - 2 - rules) * 2 / 7 + 1), arg, 3 + rules)
if kind == 2 or kind == 3 then
    f, g, h, i, j = d, e, f, g, h
end
local size, numbers = 7 * count, two and '<I7I7I7I7I7I7I7' or '<I7I7I7I7I7'
local replies, heads = {}, {} -- the head by status: the same for all keys whose last moment is not later than now

for p = 1, #KEYS do
    local key, status = KEYS[p], 6
    local value = pcall('GET', key)
    local found, last, blocked, u, v, s, t = rule, 0, 0, 0, 0, 0, 0
    if value then
        if #value == size then -- an error has no size: take.lua finds out which one it is
            found, last, blocked, u, v, s, t = read(numbers, value)
        else
            found = -1
        end
    end
    if found == rule and last <= now then -- take.lua decides about a value from the future
        local covered = now -- the key's TTL reaches at least to this moment, because of a used window
        if v > 0 and kind ~= 1 and u > covered then
            covered = u
        end
        if t and t > 0 and other_kind ~= 1 and s > covered then
            covered = s
        end
        if blocked > now then
            u = nil
        else
            u, v = charged(kind, u, v, now, a, b, c, d, e)
            if u and two then
                s, t = charged(other_kind, s, t, now, f, g, h, i, j)
                u = s and u
            end
        end
        if u then
            local ending = kind == 1 and u + 1 or u
            if two and s >= ending then
                ending = other_kind == 1 and s + 1 or s
            end
            if ending <= covered then
                -- Setting a TTL costs as much as the rest of a write, and this key's TTL is long enough.
                call('SETRANGE', key, '7', two and write('<I7I7I7I7I7I7', now, blocked, u, v, s, t) or
                    write('<I7I7I7I7', now, blocked, u, v))
            else
                local ttl = ending - now
                ttl = (ttl - ttl % 1000) / 1000 + MARGIN + 1
                call('SET', key, two and write(numbers, rule, now, blocked, u, v, s, t) or
                    write(numbers, rule, now, blocked, u, v), 'PX', ttl < LONGEST and ttl or LONGEST)
            end
            status = 1
        elseif u == nil then
            status = 0
        else
            status = 2
        end
    end
    if not value or status > 1 then
        replies[p] = write('<BI7B', status, now, 0)
    else
        local head = last < now and heads[status] or write('<BI7B', status, now, 1)
        if last < now then
            heads[status] = head
        end
        replies[p] = head .. sub(value, 15)
    end
end
return replies
