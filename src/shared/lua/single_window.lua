-- check, peek, upto and lease of one fixed_window, in one piece that makes no functions, with the full
-- answer of decide.lua (lease: and of lease.lua). It decides as fixed_window.lua and leased_window.lua do.
-- Months, a key with a block, a window that is ahead, a cost beyond the quota, and anything that is no
-- state are left to the rest of the script.
local of_one = #KEYS == 1 and ARGV[5] ~= '2629746000000' and ARGV[1]
if of_one == 'check' or of_one == 'peek' or of_one == 'upto' or of_one == 'lease' then
    local quota, a, b, cost = ARGV[3] + 0, ARGV[5] + 0, ARGV[6] + 0, ARGV[7] + 0
    local value = redis.call('GET', KEYS[1])
    local index = math.floor((now - b) / a)
    local found, count = index, 0
    if value then
        found, count = string.match(value, '^(-?%d+):(%d+)$')
        found, count = tonumber(found), tonumber(count)
    end
    if found and found <= index and cost <= quota then
        local ends = (index + 1) * a + b
        count = found == index and count or 0
        if of_one == 'upto' then
            local room = quota - count
            cost = room < 1 and 1 or cost < room and cost or room
        end
        local lease = of_one == 'lease'
        local kept, changed, keep, granted = false, false, 0, 0
        if lease and ARGV[10] + 0 == ends then -- a mark is the end of its window
            local back = ARGV[12] + 0
            kept, changed, keep = true, back > 0, ARGV[13] + 0
            count = count > back and count - back or 0
        end
        local allowed = count + cost <= quota
        local take = allowed and cost > 0 and of_one ~= 'peek'
        local units = take and cost or 0
        if lease and allowed then
            local most = math.floor((quota - count - units) / 8)
            granted = ARGV[9] - keep
            granted = granted < most and granted or most
            granted = granted > 0 and granted or 0
            units = units + granted
        end
        count = count + units
        if units > 0 or changed then
            local fresh = count > 0 and ends - now or 0
            fresh = fresh < 3155760000000000 and fresh or 3155760000000000
            redis.call('SET', KEYS[1], string.format('%.0f:%.0f', index, count), 'PX', math.ceil(fresh / 1000) + KEEP_MS)
        end
        local answer = { allowed and 1 or 2, 0, count < quota and quota - count or 0, take and cost or 0,
            allowed and 0 or ends - now, count > 0 and ends - now or 0, 0, now, 0 }
        if lease then
            local holds = granted + keep > 0
            answer[10], answer[11], answer[12], answer[13] = granted, holds and ends or 0, holds and ends - now or 0, kept and 1 or 0
        end
        return answer
    end
end
