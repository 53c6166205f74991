-- Changes an earlier charge to one key: settles it, gives it back, or ends a request in flight.
--
-- A script, because reading the key and correcting it must be one step. The arithmetic is that of take.lua, which also
-- documents the layout of a value; the differences were computed by the gateway. Never more is given back than is used.
--
-- KEYS  the key; for a correction that may be repeated, its mark: a key of its own in the same slot. The mark is set by the
--       correction that was done, and a repetition then changes nothing.
-- ARGV  byte mode = 2 replace a foreign value + 4 of a reservation + 8 has tails; byte rules; byte numbers before the tails; a byte per rule
--       = kind + 8 x (1 charge more + 2 give back + 8 starts with less; neither 1 nor 2: leave it; both, in flight: keep
--       at most so many); then 7-byte numbers: the fingerprint, the moment of the charge; of a reservation: its id; the reservation ends, and when the value
--       no longer has it, nothing changes; and for each rule
--         1 bucket              ticks per microsecond, difference (us, rest); when it starts with less: what is missing
--         2 window, clock       difference, end of the window it was charged in, period
--         3 window, first call  the same
--         4 window, calendar    difference, end of the window it was charged in, start of a window, its end, the next
--                               one's end
--         5 sliding window      difference, period
--         6 sliding log         difference, period, limit
--         7 in flight           difference, holder, lifetime: the holder's requests in flight live that long from now; the
--                               latest moment for this call. To keep at most so many: the number instead of the
--                               difference, and instead of the latest moment the one that must be over
-- Returns a string: byte status, number now; 1 done, the others as in take.lua: 2 boundaries, 3 other rules with the
--       whole value, 4 foreign. Or Redis's error, as in take.lua.

local time = redis.call('TIME') local now = time[1] * 1000000 + time[2]

local NUMBERS =
    '<I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7' ..
    'I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7' ..
    'I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7I7'
local LARGEST = 9007199254740991
local MARK = 1751477348 -- of a reservation, as in take.lua
local MARGIN, LONGEST = 10000, 315360000000 -- milliseconds: ten seconds, ten years
local MARK_LIVES = 120000 -- milliseconds; a gateway repeats a correction that may have been done no longer than that
local read, write, byte, sub, max, min = struct.unpack, struct.pack, string.byte, string.sub, math.max, math.min
local key, mark, arg = KEYS[1], KEYS[2], ARGV[1]
if mark and redis.call('GET', mark) then
    return write('<BI7', 1, now)
end
local b = {byte(arg, 1, 3 + byte(arg, 2))}
local w = {read(sub(NUMBERS, 1, (#arg - #b) * 2 / 7 + 1), arg, #b + 1)}
local format, count = sub(NUMBERS, 1, 2 * b[3] + 1), b[3]
local value, s, held = redis.pcall('GET', key), {w[1], 0, 0}, ''
local reserved = b[1] % 8 >= 4

if value then
    local size, found = #value, -1 -- an error has no size
    if size >= 21 and size % 7 == 0 then
        found = read('<I7', value)
    end
    if found == w[1] then
        if size >= 7 * count then
            s = {read(format, value)}
            local j = 4
            for r = 4, #b do
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
    if found ~= w[1] then
        if type(value) == 'table' and sub(value.err, 1, 9) ~= 'WRONGTYPE' then
            return value -- such as NOPERM: the value is not known, so it must not be replaced
        end
        if b[1] % 4 < 2 then
            return found < 0 and write('<BI7B', 4, now, 0) or write('<BI7B', 3, now, 0) .. value
        end
        value, s, held = false, {w[1], 0, 0}, ''
    elseif s[2] > now then -- written by a clock that was ahead
        value = rewound(value, s, b, w, reserved and 4 or 3, {3, 3, 3, 5, 2, 3, 4}, format, now)
        if not value then
            return write('<BI7B', 2, now, 0)
        end
        redis.call('SETRANGE', key, 0, value)
        held = held ~= '' and sub(value, -#held) or ''
    end
end
local fresh = not value
for j = 4, fresh and count or 0 do
    s[j] = 0
end

local charged_at, changed, ending = w[2], false, max(now, s[3])
local i, j, tail, text = reserved and 4 or 3, 4, 7 * count + 1, ''
if reserved then
    for at = 1, #held, 7 * #b + 14 do
        if read('<I7', held, at + 7) == w[3] then
            held, changed = sub(held, 1, at - 1) .. sub(held, at + 7 * #b + 14), true
            break
        end
    end
    if not changed then
        return write('<BI7', 1, now)
    end
end
for r = 4, #b do
    local kind = b[r] % 8
    local how = (b[r] - kind) / 8
    local starts, more = how >= 8, how % 2 == 1
    local less = how % 4 >= 2 and not fresh -- a key that has expired had recovered: there is nothing to give back
    local by = w[i]
    if kind == 1 then
        local us, rest = s[j], s[j + 1]
        if starts and fresh then
            us, rest, changed = now + w[i + 3], w[i + 4], true
        end
        if us < now then
            us, rest = now, 0
        end
        if more then
            us, rest, changed = us + w[i + 1], rest + w[i + 2], true
            if rest >= by then
                us, rest = us + 1, rest - by
            end
            if us > LARGEST then
                us, rest = LARGEST, 0
            end
        elseif less and (us > now or rest > 0) then
            us, rest, changed = us - w[i + 1], rest - w[i + 2], true
            if rest < 0 then
                us, rest = us - 1, rest + by
            end
            if us < now then
                us, rest = now, 0
            end
        end
        s[j], s[j + 1] = us, rest
        ending = max(ending, us + 1)
        i, j = i + (starts and 5 or 3), j + 2
    elseif kind < 5 then
        local last, used = s[j], s[j + 1]
        if more and by > 0 then
            if last <= now then
                used = 0
                if kind == 2 then
                    last = now - now % w[i + 2] + w[i + 2]
                elseif kind == 3 then
                    last = now + w[i + 2]
                elseif now < w[i + 2] or now >= w[i + 4] then
                    return write('<BI7B', 2, now, 0)
                else
                    last = now < w[i + 3] and w[i + 3] or w[i + 4]
                end
            end
            used, changed = min(used + by, LARGEST), true
        elseif less and last > now and w[i + 1] >= last then -- the count of a window that has ended is already dropped
            used, changed = used - min(by, used), true
            if used == 0 then
                last = 0 -- no charge is left: the next call may begin a new window
            end
        end
        s[j], s[j + 1] = last, used
        ending = max(ending, last)
        i, j = i + (kind == 4 and 5 or 3), j + 2
    elseif kind == 5 then
        local period = w[i + 1]
        local from, previous, current = s[j], s[j + 1], s[j + 2]
        local passed = now - from
        if passed >= period then
            from, previous, current = from + period, passed < 2 * period and current or 0, 0
        end
        if previous == 0 and current == 0 then
            from = now - now % period
        end
        if more then
            current, changed = min(current + by, LARGEST), true
        elseif less and charged_at >= from then
            current, changed = current - min(by, current), true
        elseif less and charged_at >= from - period then
            previous, changed = previous - min(by, previous), true
        end
        s[j], s[j + 1], s[j + 2] = from, previous, current
        ending = max(ending, current > 0 and from + 2 * period or previous > 0 and from + period or 0)
        i, j = i + 2, j + 3
    elseif kind == 6 then
        local n, sum, first, last = s[j], s[j + 1], tail, tail + 14 * s[j]
        local period = w[i + 1]
        tail = last
        while n > 0 do
            local when, cost = read('<I7I7', value, first)
            if when + period > now then
                break
            end
            n, sum, first = n - 1, sum - cost, first + 14
        end
        local log = n > 0 and sub(value, first, last - 1) or ''
        if more then
            by = min(by, LARGEST - sum)
            local when, had = now, 0
            if n > 0 then
                when, had = read('<I7I7', log, #log - 13)
            end
            if by > 0 and n > 0 and (when >= now or n >= w[i + 2]) then
                log = sub(log, 1, -15) .. write('<I7I7', now, had + by)
            elseif by > 0 then
                log, n = log .. write('<I7I7', now, by), n + 1
            end
            sum, changed = sum + by, true
        elseif less then
            -- From the record that was charged, or the nearest earlier one, because records may have been merged.
            local at = #log - 13
            while at > 0 and by > 0 do
                local when, cost = read('<I7I7', log, at)
                if when <= charged_at then
                    local part = min(by, cost)
                    local kept = ''
                    if cost > part then
                        kept = write('<I7I7', when, cost - part)
                    else
                        n = n - 1
                    end
                    log = sub(log, 1, at - 1) .. kept .. sub(log, at + 14)
                    by, sum, changed = by - part, sum - part, true
                end
                at = at - 14
            end
        end
        s[j], s[j + 1], text = n, sum, text .. log
        if n > 0 then
            ending = max(ending, read('<I7', log, #log - 13) + period)
        end
        i, j = i + 3, j + 2
    else
        local most = how % 4 == 3
        if most == (now <= w[i + 3]) then
            return write('<BI7B', 2, now, 0)
        end
        -- A reservation that is not confirmed yet counts beside the requests that the holder knows of.
        for at = 1, most and #held or 0, 7 * #b + 14 do
            if read('<I7', held, at + 28) == w[i + 1] then
                by = by + read('<I7', held, at + 7 * r + 7)
            end
        end
        local last, mine, expires, others = tail + 21 * s[j], 0, 0, ''
        while tail < last do
            local holder, held, till = read('<I7I7I7', value, tail)
            if till > now then
                if holder == w[i + 1] then
                    mine, expires = held, now + w[i + 2]
                    changed = true
                else
                    others, ending = others .. sub(value, tail, tail + 20), max(ending, till)
                end
            end
            tail = tail + 21
        end
        if most then
            mine = min(mine, by)
        elseif more then
            mine, expires, changed = min(mine + by, LARGEST), now + w[i + 2], true
        elseif less then
            mine = mine - min(by, mine)
        end
        if mine > 0 then
            others, ending = others .. write('<I7I7I7', w[i + 1], mine, expires), max(ending, expires)
        end
        s[j], text = #others / 21, text .. others
        i, j = i + 4, j + 1
    end
end

if changed then
    local ttl = ending - now
    ttl = (ttl - ttl % 1000) / 1000 + MARGIN + 1
    s[2] = now
    redis.call('SET', key, write(format, unpack(s, 1, count)) .. text .. held, 'PX', min(ttl, LONGEST))
end
if mark then
    redis.call('SET', mark, '1', 'PX', MARK_LIVES)
end
return write('<BI7', 1, now)
