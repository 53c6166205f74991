-- Takes a value that was written by a clock that was ahead as if it had been written now: what was used stays used, and
-- recovers as fast as the rules allow. Like rewind() in limiter/core/meter.hpp. take.lua and correct.lua begin with this
-- text; take.lua documents the layout of a value. Times are moved by the same span, except that a window that follows the
-- clock, unless it was over, becomes the one that now runs.
--
-- s: the numbers of the value before its tails, which are changed too; bytes, w: of the arguments; from: where the first
-- rule begins in w; lengths: by kind, how many numbers of w a rule has.
-- Returns the value; false when `now` is in neither of the windows that the arguments give for a calendar.
local function rewound(value, s, bytes, w, from, lengths, format, now)
    local read, write = struct.unpack, struct.pack
    local last, out, at, j = s[2], {}, 7 * bytes[3] + 1, 4
    local back = last - now
    local function earlier(t)
        return t > back and t - back or 0
    end
    s[2], s[3] = now, earlier(s[3])
    for r = 4, #bytes do
        local kind = bytes[r] % 8
        if kind == 1 then
            if s[j] < back then
                s[j], s[j + 1] = 0, 0
            else
                s[j] = s[j] - back
            end
        elseif kind == 2 then
            if s[j] <= last then
                s[j], s[j + 1] = 0, 0
            else
                s[j] = now - now % w[from + 2] + w[from + 2]
            end
        elseif kind == 3 then
            s[j] = s[j + 1] > 0 and earlier(s[j]) or 0
        elseif kind == 4 then
            if s[j] <= last then
                s[j], s[j + 1] = 0, 0
            else
                local start, middle, stop = w[from + 2], w[from + 3], w[from + 4]
                if now < start or now >= stop then
                    return false
                end
                s[j] = now < middle and middle or stop
            end
        elseif kind == 5 then
            local a, z, c, period = s[j], s[j + 1], s[j + 2], w[from + lengths[5] - 1]
            if last - a >= period then
                a, z, c = a + period, last - a < 2 * period and c or 0, 0
            end
            s[j], s[j + 1], s[j + 2] = (z > 0 or c > 0) and earlier(a) or 0, z, c
        elseif kind == 6 then
            for _ = 1, s[j] do
                local when, cost = read('<I7I7', value, at)
                out[#out + 1] = write('<I7I7', earlier(when), cost)
                at = at + 14
            end
        else
            for _ = 1, s[j] do
                local holder, held, expires = read('<I7I7I7', value, at)
                out[#out + 1] = write('<I7I7I7', holder, held, earlier(expires))
                at = at + 21
            end
        end
        from = from + lengths[kind] + (kind == 1 and bytes[r] >= 64 and 2 or 0)
        j = j + (kind == 7 and 1 or kind == 5 and 3 or 2)
    end
    local size = 7 * #bytes + 14 -- of a reservation
    while at <= #value do
        local mark, id, expires, charged_at = read('<I7I7I7I7', value, at)
        out[#out + 1] = write('<I7I7I7I7', mark, id, earlier(expires), earlier(charged_at)) ..
            string.sub(value, at + 28, at + size - 1)
        at = at + size
    end
    return write(format, unpack(s, 1, bytes[3])) .. table.concat(out)
end

