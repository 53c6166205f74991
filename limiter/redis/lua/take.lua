-- Decides a chain of limits and charges it: all rules admit, or nothing is charged.
--
-- A script, because a chain over several keys must be read, decided and charged as one step and by one clock. It only
-- decides and charges, by sums and comparisons of whole numbers below 2^53, which are exact in Lua. The values that a
-- client sees are computed by the gateway, from the returned state, which is the state before the charge.
--
-- KEYS  one per part of the chain. A key's value is one string of 7-byte numbers, little-endian: fingerprint of the
--       rules, last moment, blocked until | the state of each rule | tails, in the order of the rules
--         bucket          moment it will be empty: microseconds, rest in ticks
--         window          end, used
--         sliding window  start, previous, current
--         sliding log     records, sum                     tail: when, cost of each record, oldest first
--         in flight       holders                          tail: holder, count, expires of each
--       and at the end, on a cluster, the reservations of chains over several slots that are not confirmed yet (decision 8):
--         mark, id, expires, charged at, holder, a cost per rule   of each reservation; the state includes its charge
-- ARGV  one per part: byte mode = 1 look only + 2 replace a foreign value + 4 a refusal may write (these are read from
--       the first part) + 8 has tails + 32 reserve: the charge is given back unless it is confirmed in time, and a
--       refusal counts nowhere + 64 refused elsewhere: count the refusal, admit nothing; byte rules; byte numbers before
--       the tails; a byte per rule = kind + 8 x (1 shadow + 2 count_refused + 4 unlimited + 8 starts with less); then
--       7-byte numbers: the fingerprint; to reserve: id, lifetime, holder, a cost per rule; and for each rule
--         1 bucket              ticks per microsecond, cost (us, rest), tolerance (us, rest); when it starts with less:
--                               what is missing (us, rest)
--         2 window, clock       cost, limit, period
--         3 window, first call  cost, limit, period
--         4 window, calendar    cost, limit, start of a window, its end, the next one's end
--         5 sliding window      cost, limit, period
--         6 sliding log         cost, limit, period
--         7 in flight           cost, limit, holder, lifetime, the latest moment for this call: after it nothing waits
--                               for the reply, so nothing would end what was charged
-- Returns a string: byte status, number now, and by status
--         0 refused, 1 admitted  for each part: byte 1, blocked until and the state before the charge, or byte 0 when
--                                there was no value; then of each sliding log: used before, and of the log that the
--                                decision is about (after a refusal that counts): used, newest, record to wait for;
--                                and of each rule in flight: the sum
--         2 boundaries           byte part: now is in neither of the windows given, or later than the latest moment
--         3 other rules          byte part, the whole value: it was written under other rules
--         4 foreign              byte part: the key holds a value that headgate did not write
--         5 lapsed               byte part, the whole value: a reservation in it has expired
--       or Redis's error, when a key cannot be read for another reason than its type.
-- Nothing is written when nothing changes, except a value whose last moment is in the future (rewind.lua). A written
-- value has a TTL after which it has recovered: a key never lives shorter than a used window in it.
-- The usual chain, of one key, has another script: take_each.lua.

local time = redis.call('TIME') local now = time[1] * 1000000 + time[2]

local LARGEST = 9007199254740991
local MARGIN, LONGEST = 10000, 315360000000 -- milliseconds: ten seconds, ten years
local KEYS, ARGV, read, write, byte, sub = KEYS, ARGV, struct.unpack, struct.pack, string.byte, string.sub
local mode = byte(ARGV[1])

local NUMBERS =
    '<I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7' ..
    'I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7' ..
    'I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7' ..
    'I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7'
local MARK = 1751477348 -- of a reservation: "held"
local reserve, counted = mode % 64 >= 32, mode >= 64
local parts, look = #KEYS, mode % 2 == 1
local chain = {}
local blocked_until, tails = 0, false

for p = 1, parts do
    local arg = ARGV[p]
    local b = {byte(arg, 1, 3 + byte(arg, 2))}
    local w = {read(sub(NUMBERS, 1, (#arg - #b) * 2 / 7 + 1), arg, #b + 1)}
    local value, s, held = redis.pcall('GET', KEYS[p]), false, ''
    local stored = value
    if value then
        local size, count, found = #value, b[3], -1 -- an error has no size
        if size >= 7 * count and size % 7 == 0 then
            s = {read(sub(NUMBERS, 1, 2 * count + 1), value)}
            found = s[1]
            if found == w[1] then
                local j = 4
                for r = 4, b[1] % 16 >= 8 and #b or 0 do
                    local kind = b[r] % 8
                    if kind == 6 then
                        size = size - 14 * s[j]
                    elseif kind == 7 then
                        size, j = size - 21 * s[j], j - 1
                    elseif kind == 5 then
                        j = j + 1
                    end
                    j = j + 2
                end
                local more = size - 7 * count
                if more > 0 and more % (7 * #b + 14) == 0 then
                    held = sub(value, -more)
                    for at = 1, more, 7 * #b + 14 do
                        if read('<I7', held, at) ~= MARK then
                            found = -1 -- has the length of reservations, but is none
                        end
                    end
                elseif more ~= 0 then
                    found = -1
                end
            end
        elseif size >= 21 and size % 7 == 0 then
            found = read('<I7', value)
            if found == w[1] then
                found = -1
            end
        end
        if found ~= w[1] then
            if type(value) == 'table' and sub(value.err, 1, 9) ~= 'WRONGTYPE' then
                return value -- such as NOPERM: the value is not known, so it must not be replaced
            end
            if mode % 4 < 2 then
                return found < 0 and write('<BI7B', 4, now, p - 1) or write('<BI7B', 3, now, p - 1) .. value
            end
            value, s, held = false, false, ''
        else
            if s[2] > now then -- written by a clock that was ahead
                value = rewound(value, s, b, w, reserve and #b + 2 or 2, {5, 3, 3, 5, 3, 3, 5},
                    sub(NUMBERS, 1, 2 * count + 1), now)
                if not value then
                    return write('<BI7B', 2, now, p - 1)
                end
                if not look then
                    redis.call('SETRANGE', KEYS[p], 0, value) -- also when the call is refused: the time counts from now
                    stored = value
                end
                held = held ~= '' and sub(value, -#held) or ''
            end
            if s[3] > blocked_until then
                blocked_until = s[3]
            end
        end
    end
    tails = tails or b[1] % 16 >= 8
    chain[p] = {value = value, stored = stored, bytes = b, arguments = w, state = s, held = held, ending = false, text = '', logs = ''}
end
for p = 1, parts do
    local held = chain[p].held
    for at = 15, #held, 7 * #chain[p].bytes + 14 do
        if read('<I7', held, at) <= now then
            return write('<BI7B', 5, now, p - 1) .. chain[p].stored
        end
    end
end

-- The first pass assumes that all rules admit. When one refuses, a second pass reads the states again and charges what a
-- refusal charges.
local blocked = blocked_until > now
local admitted = not (blocked or counted)
local writes = not look
for pass = counted and 2 or 1, 2 do
    for p = 1, parts do
        local part = chain[p]
        local value, b, w, s = part.value, part.bytes, part.arguments, part.state
        local count, fresh, changed, ending = b[3], not value, false, now
        if fresh then
            s = {w[1], 0, 0}
            for j = 4, count do
                s[j] = 0
            end
        else
            if pass == 2 then
                s = {read(sub(NUMBERS, 1, 2 * count + 1), value)}
            end
            if s[3] > ending then
                ending = s[3]
            end
        end
        local i, j, tail, text, logs, took = reserve and #b + 2 or 2, 4, 7 * count + 1, '', '', ''
        for r = 4, #b do
            local kind, starts, manner = b[r], false, 0
            if kind >= 8 then
                manner = (kind - kind % 8) / 8
                kind, starts, manner = kind % 8, manner >= 8, manner % 8
            end

            -- The state at `now`, and whether the cost fits.
            local fits, a, z, c, d
            if kind == 1 then
                a, z = s[j], s[j + 1]
                if starts and fresh then
                    a, z, changed = now + w[i + 5], w[i + 6], true
                end
                if a < now then
                    a, z = now, 0
                end
                c, d = a + w[i + 1], z + w[i + 2]
                if d >= w[i] then
                    c, d = c + 1, d - w[i]
                end
                local most = now + w[i + 3]
                fits = c < most or c == most and d <= w[i + 4]
            elseif kind < 5 then
                a, z = s[j], s[j + 1]
                if a <= now then
                    z = 0
                end
                fits = z + w[i] <= w[i + 1]
            elseif kind == 5 then
                local period = w[i + 2]
                a, z, c = s[j], s[j + 1], s[j + 2]
                local passed = now - a
                if passed >= period then
                    a, z, c = a + period, passed < 2 * period and c or 0, 0
                end
                if z == 0 and c == 0 then
                    a = now - now % period
                end
                local room = w[i + 1] - c - w[i]
                if room < 0 or z == 0 then
                    fits = room >= 0
                else
                    -- previous x what is left of the window <= room x period. Rounding keeps the order of
                    -- products: only where they seem equal, and may not be, fractions are compared as Euclid would.
                    local left = period - math.max(0, now - a)
                    local have, may = z * left, room * period
                    fits = have <= may
                    if have == may and have > LARGEST then
                        local n1, d1, n2, d2 = z, period, room, left
                        while true do
                            local r1, r2 = n1 % d1, n2 % d2
                            local q1, q2 = (n1 - r1) / d1, (n2 - r2) / d2
                            if q1 ~= q2 or r1 == 0 or r2 == 0 then
                                fits = q1 < q2 or q1 == q2 and r1 == 0
                                break
                            end
                            n1, d1, n2, d2 = d2, r2, d1, r1
                        end
                    end
                end
            elseif kind == 6 then
                -- c: where the first record begins that is still in the window.
                a, z, c, d = s[j], s[j + 1], tail, tail + 14 * s[j]
                tail = d
                while a > 0 do
                    local when, cost = read('<I7I7', value, c)
                    if when + w[i + 2] > now then
                        break
                    end
                    a, z, c = a - 1, z - cost, c + 14
                end
                fits = z + w[i] <= w[i + 1]
            else
                if now > w[i + 4] then
                    return write('<BI7B', 2, now, p - 1)
                end
                -- a: the total in flight; z, c: our count, and when it expires; d: the other holders that have not expired.
                local last = tail + 21 * s[j]
                a, z, c, d = 0, 0, 0, ''
                while tail < last do
                    local holder, held, expires = read('<I7I7I7', value, tail)
                    if expires > now then
                        a = a + held
                        if holder == w[i + 2] then
                            z, c = held, expires
                        else
                            d = d .. sub(value, tail, tail + 20)
                            ending = math.max(ending, expires)
                        end
                    end
                    tail = tail + 21
                end
                fits = a + w[i] <= w[i + 1]
            end

            -- What to charge: the cost, or (brim) the remaining capacity, or nothing.
            local charge, brim = false, false
            if pass == 2 then
                brim = manner % 4 >= 2 and not blocked
            elseif fits or manner >= 4 then
                charge = true
            elseif manner % 2 == 1 then
                brim = manner == 3 and not reserve
            else
                admitted = false
                if not tails then
                    break
                end
            end

            if reserve then
                took = took .. write('<I7', charge and w[r + 1] or 0)
            end

            if kind == 1 then
                if charge then
                    changed = changed or w[i + 1] > 0 or w[i + 2] > 0
                    if c > LARGEST then
                        c, d = LARGEST, 0
                    end
                    a, z = c, d
                elseif brim then
                    if not fits then
                        c, d = now + w[i + 3], w[i + 4]
                    end
                    if a < c or a == c and z < d then
                        a, z, changed = c, d, true
                    end
                end
                s[j], s[j + 1] = a, z
                if a >= ending then
                    ending = a + 1
                end
                i, j = i + (starts and 7 or 5), j + 2
            elseif kind < 5 then
                local cost = charge and w[i] or brim and math.min(w[i], w[i + 1] - z) or 0
                if cost > 0 then
                    if a <= now then
                        if kind == 2 then
                            a = now - now % w[i + 2] + w[i + 2]
                        elseif kind == 3 then
                            a = now + w[i + 2]
                        elseif now < w[i + 2] or now >= w[i + 4] then
                            return write('<BI7B', 2, now, p - 1)
                        else
                            a = now < w[i + 3] and w[i + 3] or w[i + 4]
                        end
                    end
                    z = z + cost
                    if z > LARGEST then
                        z = LARGEST
                    end
                    s[j], s[j + 1], changed = a, z, true
                end
                if z > 0 and a > ending then
                    ending = a
                end
                i, j = i + (kind == 4 and 5 or 3), j + 2
            elseif kind == 5 then
                local cost = charge and w[i] or brim and math.min(w[i], w[i + 1] - c) or 0
                if cost > 0 then
                    c, changed = math.min(c + cost, LARGEST), true
                end
                s[j], s[j + 1], s[j + 2] = a, z, c
                if c > 0 then
                    ending = math.max(ending, a + 2 * w[i + 2])
                elseif z > 0 then
                    ending = math.max(ending, a + w[i + 2])
                end
                i, j = i + 3, j + 3
            elseif kind == 6 then
                local cost, limit, before, log = w[i], w[i + 1], z, value
                local n, used, from = a, z, c -- the log that the decision is about
                if brim or charge and cost > 0 then
                    local add, kept = math.min(cost, LARGEST - z), ''
                    if brim then
                        -- The newest calls stay, including refused ones.
                        add = math.min(cost, limit)
                        while a > 0 and z + add > limit do
                            local when, had = read('<I7I7', value, c)
                            local surplus = z + add - limit
                            c = c + 14
                            if had <= surplus then
                                a, z = a - 1, z - had
                            else
                                z, kept = z - surplus, write('<I7I7', when, had - surplus)
                            end
                        end
                    end
                    local now_log = a > 0 and kept .. sub(value, c, d - 1) or ''
                    if add > 0 then
                        local when, had = now, 0
                        if a > 0 then
                            when, had = read('<I7I7', now_log, #now_log - 13)
                        end
                        if a > 0 and (when >= now or a >= limit) then
                            now_log = sub(now_log, 1, -15) .. write('<I7I7', now, had + add)
                        else
                            now_log, a = now_log .. write('<I7I7', now, add), a + 1
                        end
                    end
                    z, changed, text = z + add, true, text .. now_log
                    if pass == 2 then
                        log, n, used, from = now_log, a, z, 1
                    end
                    ending = math.max(ending, now + w[i + 2])
                elseif (admitted or pass == 2) and a > 0 then
                    text = text .. sub(value, c, d - 1)
                end
                s[j], s[j + 1] = a, z
                local newest, leaves = 0, 0
                if n > 0 then
                    newest = read('<I7', log, from + 14 * n - 14)
                    ending = math.max(ending, newest + w[i + 2])
                end
                if used + cost > limit and cost <= limit then
                    local rest = used
                    while n > 0 and rest + cost > limit do
                        local when, had = read('<I7I7', log, from)
                        rest, leaves, from, n = rest - had, when, from + 14, n - 1
                    end
                end
                logs = logs .. write('<I7I7I7I7', before, used, newest, leaves)
                i, j = i + 3, j + 2
            else
                logs = logs .. write('<I7', a)
                if charge and w[i] > 0 then
                    z, c, changed = math.min(z + w[i], LARGEST), now + w[i + 3], true
                end
                if z > 0 then
                    d = d .. write('<I7I7I7', w[i + 2], z, c)
                    ending = math.max(ending, c)
                end
                s[j], text = #d / 21, text .. d
                i, j = i + 5, j + 1
            end
        end
        part.state, part.text, part.logs, part.ending = s, text .. part.held, logs, changed and ending
        if reserve and changed then
            part.text = part.text .. write('<I7I7I7I7I7', MARK, w[2], now + w[3], now, w[4]) .. took
        end
        if not (admitted or tails) and pass == 1 then
            break
        end
    end
    if admitted then
        break
    elseif look or mode % 8 < 4 then
        writes = false
        break
    end
end

for p = 1, writes and parts or 0 do
    local part = chain[p]
    if part.ending then
        local s, count = part.state, part.bytes[3]
        local ttl = part.ending - now
        ttl = (ttl - ttl % 1000) / 1000 + MARGIN + 1
        s[2] = now
        redis.call('SET', KEYS[p], write(sub(NUMBERS, 1, 2 * count + 1), unpack(s, 1, count)) .. part.text,
            'PX', ttl < LONGEST and ttl or LONGEST)
    end
end

local reply = write('<BI7', admitted and 1 or 0, now)
for p = 1, parts do
    local part = chain[p]
    reply = reply .. (part.value and '\1' .. sub(part.value, 15, 7 * part.bytes[3]) or '\0') .. part.logs
end
return reply
