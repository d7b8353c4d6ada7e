-- The verb `lease` of a token bucket, in one piece that makes no functions: what lease.lua and
-- leased_bucket.lua do, of which the numbers and the state are. A key with a block or '@', a state or a
-- mark from a far future, a cost beyond the quota, and anything that is no state are left to them.
if ARGV[1] == 'lease' then
    local PARTS = 128000
    local quota, a, b, cost = ARGV[3] + 0, ARGV[5] + 0, ARGV[6] + 0, ARGV[7] + 0
    local floor = math.floor
    local value = redis.call('GET', KEYS[1])
    local x = quota * b
    local span_r = x % PARTS
    local span_u = quota * a + floor(x / PARTS)
    local life = span_u < 250000 and 250000 or span_u < 2000000 and span_u or 2000000
    local apart = floor(life / 8)
    local u, r = 0, 0
    -- Each mark is three numbers: when it is, the units outstanding under it, and of how many leases.
    local marks, n, held, leases = {}, 0, 0, 0
    local good = cost <= quota and ARGV[8] == '0'
    if value and good then
        u, r = tonumber(value), 0
        if not u then
            local semicolon = string.find(value, ';', 1, true)
            local state = semicolon and string.sub(value, 1, semicolon - 1) or value
            u = tonumber(state)
            if not u then
                u, r = string.match(state, '^(%d+):(%d+)$')
                u, r = tonumber(u), tonumber(r)
            end
            if semicolon and string.find(value, '^[%d,;]+$', semicolon) then
                local at = 0
                for distance, units, count in string.gmatch(value, ';(%d+),(%d+),(%d+)') do
                    at = at + distance
                    marks[n + 1], marks[n + 2], marks[n + 3] = at, units + 0, count + 0
                    held, leases, n = held + units, leases + count, n + 3
                end
                good = n > 0 and at <= now + life + apart
            elseif semicolon then
                good = false
            end
        end
        good = good and u and u < 9007199254740992
        u = good and u - now
    end
    -- At a mark, what is outstanding counts as spent: the state led by the time of it.
    local first = 1
    while good and first <= n and marks[first] <= now do
        local h = held < quota and held or quota
        x = h * b
        local h_r = x % PARTS
        local h_u = h * a + floor(x / PARTS) + marks[first] - now
        if h_u > u or h_u == u and h_r > r then
            u, r = h_u, h_r
        end
        held, leases, first = held - marks[first + 1], leases - marks[first + 2], first + 3
    end
    if good then
        if u < 0 then
            u, r = 0, 0
        end
        local h = held < quota and held or quota
        x = h * b
        local h_r = x % PARTS
        local h_u = h * a + floor(x / PARTS)
        if h_u > u or h_u == u and h_r > r then
            u, r = h_u, h_r
        end
        good = u < span_u + ARGV[4] * a + 1000000 -- not from a far future
    end
    if good then
        -- Settle the lease that the node had.
        local want, mark, had, back, keep = ARGV[9] + 0, ARGV[10] + 0, ARGV[11] + 0, ARGV[12] + 0, ARGV[13] + 0
        local kept, changed = false, false
        if mark > 0 and had >= back + keep then
            for i = first, n, 3 do
                if marks[i] == mark and marks[i + 1] >= had and marks[i + 2] > 0 then
                    kept, changed = true, true
                    marks[i + 1], marks[i + 2] = marks[i + 1] - had, marks[i + 2] - 1
                    held, leases = held - had, leases - 1
                    if marks[i + 1] == 0 then -- no units are left under it: it is not written
                        leases = leases - marks[i + 2]
                    end
                    x = back * b
                    local back_r = x % PARTS
                    u, r = u - back * a - floor(x / PARTS), r - back_r
                    if r < 0 then
                        u, r = u - 1, r + PARTS
                    end
                    if u < 0 then
                        u, r = 0, 0
                    end
                    break
                end
            end
        end
        keep = kept and keep or 0
        -- The whole units that are there: -1 in debt, where even a cost of 0 is denied.
        local left_u, left_r = span_u - u, span_r - r
        if left_r < 0 then
            left_u, left_r = left_u - 1, left_r + PARTS
        end
        local room = left_u < 0 and -1 or floor(left_u / a)
        if b > 0 and left_u >= 0 then -- a quotient of doubles may be one off
            room = floor((left_u + left_r / PARTS) / (a + b / PARTS)) + 1
            repeat
                x = room * b
                local unit_r = x % PARTS
                local unit_u = room * a + floor(x / PARTS)
                local much = unit_u > left_u or unit_u == left_u and unit_r > left_r
                room = much and room - 1 or room
            until not much
        end
        -- Decide the question.
        local allowed = cost <= room
        local take = allowed and cost > 0
        local retry, granted, fresh = 0, 0, 0
        if not allowed then
            x = cost * b
            retry = cost * a + floor(x / PARTS) - left_u + (x % PARTS > left_r and 1 or 0)
        else
            -- A new lease gets as much as `most` of leased_bucket.lua says.
            local rest = room - cost
            local share = floor(quota / (4 * (leases + 1)))
            local half, crumb = floor(rest / 2), floor(share / 16)
            if half <= crumb then
                half = take and (rest < crumb and rest or crumb) or 0
            end
            half = half + keep
            granted = want < share and want or share
            granted = (granted < half and granted or half) - keep
            granted = granted > 0 and granted or 0
        end
        if granted + keep > 0 then
            -- The mark of the new lease, in the row of those that are there.
            fresh = now + life
            local last = n - 2
            if last >= first and marks[last + 1] == 0 then
                last = last - 3
            end
            if last >= first then
                fresh = marks[last] + math.ceil((fresh - marks[last]) / apart) * apart
            end
            held, leases, changed = held + granted + keep, leases + 1, true
        end
        -- Take the units of the question and of the lease, and store all that.
        local units = (take and cost or 0) + granted
        if units > 0 then
            x = units * b + r
            r = x % PARTS
            u = u + units * a + floor(x / PARTS)
        end
        local reset = r == 0 and u or u + 1
        if units > 0 or changed then
            local state = now + u
            local text = string.format(r > 0 and '%d%08d:%d' or '%d%08d', floor(state / 100000000), state % 100000000, r)
            local at, stay = 0, reset
            local i, new = first, fresh > 0
            while i <= n or new do
                local when, count, of
                if new and (i > n or marks[i] >= fresh) then
                    when, count, of, new = fresh, granted + keep, 1, false
                    if i <= n and marks[i] == fresh then
                        count, of = count + marks[i + 1], (marks[i + 1] > 0 and marks[i + 2] or 0) + 1
                        i = i + 3
                    end
                else
                    when, count, of = marks[i], marks[i + 1], marks[i + 2]
                    i = i + 3
                end
                if count > 0 then
                    local far = when - at
                    if at == 0 then
                        text = text .. string.format(';%d%08d,%.0f,%.0f', floor(far / 100000000), far % 100000000, count, of)
                    else
                        text = text .. string.format(';%.0f,%.0f,%.0f', far, count, of)
                    end
                    at = when
                end
            end
            if at > 0 then
                local h = held < quota and held or quota
                h = h * a + floor(h * b / PARTS) + at - now + 1
                stay = h > stay and h or stay
            end
            stay = stay < 3155760000000000 and stay or 3155760000000000
            redis.call('SET', KEYS[1], text, 'PX', math.ceil(stay / 1000) + KEEP_MS)
        end
        room = room > units and room - units or 0
        return { allowed and 1 or 2, 0, room, take and cost or 0, retry, reset, 0, now, 0,
            granted, fresh, fresh > 0 and fresh - now or 0, kept and 1 or 0 }
    end
end
