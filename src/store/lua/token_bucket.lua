-- token_bucket: `quota` tokens, one more in each (a, b) of time (src/algo/token_bucket.h). With a
-- wait, a call may take tokens that are yet to come, as far as the debt allows.
algorithms['1'] = bucket_ops(
    function(p)
        local u, r = times(p.cost, p.a, p.b)
        u, r = minus(p.span_u, p.span_r, u, r)
        if p.wait == 0 then
            return u, r
        end
        return plus(u, r, patience(p.wait, minus(p.reach_u, p.reach_r, p.span_u, p.span_r)))
    end,
    function(p)
        if p.wait == 0 then
            return 0
        end
        local u, r = times(p.granted == 0 and p.cost or 0, p.a, p.b) -- a peek: as if
        u, r = plus(p.u, p.r, u, r)
        return above(u, r, p.span_u, p.span_r) and round_up(minus(u, r, p.span_u, p.span_r)) or 0
    end)
