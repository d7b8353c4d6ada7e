-- leaky_bucket: a queue of quota - 1 behind the one being served (src/algo/bucket.h). With a wait, the
-- caller's patience takes the place of the queue's length. b has PARTS more for each unit that need not
-- wait: by p.start_u, p.start_r, the time of these units, each call acts before its turn.
algorithms['2'] = bucket(
    function(p, cu, cr)
        local u, r = carry(p.reach_u - cu, p.reach_r - cr)
        local wait_u, wait_r = carry(p.wait + p.start_u, p.start_r)
        if wait_u < u or wait_u == u and wait_r <= r then
            return wait_u, wait_r
        end
        return u, r
    end,
    function(p) -- a turn begins where the queue ended before it
        local u, r = times(p.granted, p.a, p.b)
        u, r = carry(p.u - u, p.r - r)
        u, r = carry(u - p.start_u, r - p.start_r)
        return u < 0 and 0 or r == 0 and u or u + 1
    end,
    lead, save, true)

local leaky_look = algorithms['2'].look
algorithms['2'].look = function(p)
    if not p.start_u then
        local undelayed = floor(p.b / PARTS)
        p.b = p.b % PARTS
        p.start_u, p.start_r = times(undelayed, p.a, p.b)
    end
    return leaky_look(p)
end
