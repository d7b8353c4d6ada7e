-- token_bucket: `quota` tokens, one more in each (a, b) of time (src/algo/token_bucket.h). With a
-- wait, a call may take tokens that are yet to come, as far as the debt allows.
local function token_limit(p, cu, cr)
    local u, r = carry(p.reach_u - p.span_u, p.reach_r - p.span_r)
    if p.wait <= u then
        u, r = p.wait, 0
    end
    u, r = carry(p.span_u + u, p.span_r + r)
    return carry(u - cu, r - cr)
end

local function token_delay(p)
    if p.wait == 0 or rare then
        return 0
    end
    local u, r = times(verb == 'peek' and p.cost or 0, p.a, p.b) -- as if
    u, r = carry(p.u + u, p.r + r)
    u, r = carry(u - p.span_u, r - p.span_r)
    return u < 0 and 0 or r == 0 and u or u + 1
end

algorithms['1'] = bucket(token_limit, token_delay, lead, save)
