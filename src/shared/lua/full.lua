-- The argument 'full' after all others: the node has seen that the memory of this store is nearly full.
-- Keys that exist are decided as ever; if one is absent, nothing is decided, and the answer is {-1, the
-- absent keys as bits}. The node decides those by itself: so a flood of new keys fills no memory.
if ARGV[#ARGV] == 'full' then
    ARGV[#ARGV] = nil
    local absent, bit = 0, 1
    for i = 1, #KEYS do
        if redis.call('EXISTS', KEYS[i]) == 0 then
            absent = absent + bit
        end
        bit = bit * 2
    end
    if absent > 0 then
        return { -1, absent }
    end
end
