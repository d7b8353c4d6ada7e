"""What envoyproxy/ratelimit documents and does, line by line: a sentence, a domain, questions and the answers to them in
the notation of envoy_world.py. One server has all of the domains in memory, a second one in a store. Limits are for a
year, so that no window ends meanwhile; each line uses values of its own, so that none depends on another."""
import re, shutil, sys

from envoy_world import World, start_redis
from running import until

# The descriptors of each domain; LN stands for a rate_limit of N in a year.
DOMAINS = {
    "match": """
  - {key: path, L3}
  - {key: path, value: /ex*, L2}
  - {key: path, value: /exact, L1}
  - {key: user, value: ann, L1}
  - {key: user, L5}
  - {key: only, value: this, L1}
""",
    "stars": """
  - {key: path, value: a*, L1}
  - {key: path, value: ab*, L2}
  - {key: path, value: '*mid*', L3}
  - {key: path, value: 'x*y*z', L4}
  - {key: path, value: '*.png', L5}
  - {key: any, value: '*', L6}
  - {key: dot, value: 'a.c', L7}
""",
    "depth": """
  - key: path
    value: /d
    L5
    descriptors:
      - {key: user, L3}
  - key: path
    value: /deep
    descriptors:
      - key: user
        descriptors: [{key: method, L2}]
  - {key: path, value: /leaf, L7}
  - key: path
    descriptors:
      - {key: method, L4}
  - key: tree
    value: a*
    descriptors: [{key: user, L6}]
  - key: tree
    descriptors: [{key: method, L8}]
""",
    "twice": """
  - key: k
    descriptors: [{key: k, L2}]
  - {key: p, descriptors: [{key: q, L2}]}
  - {key: a_b, L1}
  - {key: a, value: b, L2}
  - {key: user, L3}
""",
    "share": """
  - {key: path, value: /each/*, L2}
  - {key: path, value: /files/*, share_threshold: true, L2}
  - key: path
    value: /tree/*
    share_threshold: true
    descriptors: [{key: user, L2}]
""",
    "numbers": """
  - {key: user, L10}
  - {key: none, L0}
  - {key: most, L4294967295}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: shadow, shadow_mode: true, L1}
  - {key: Unit, rate_limit: {unit: Year, requests_per_unit: 1}}
  - {key: UNIT, rate_limit: {unit: YEAR, requests_per_unit: 1}}
  - {key: noted, detailed_metric: true, value_to_metric: true, metadata: {team: {name: a}, list: [1, two]}, L1}
""",
    "several": """
  - {key: one, L1}
  - {key: five, L5}
  - {key: dry, shadow_mode: true, L1}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: named, rate_limit: {name: by-name, unit: year, requests_per_unit: 3}}
""",
    "quota": """
  - {key: q1, quota_mode: true, L1}
  - {key: q2, quota_mode: true, L2}
  - {key: plain, L3}
  - {key: free, quota_mode: true, rate_limit: {unlimited: true}}
""",
    "replaces": """
  - {key: all, rate_limit: {name: all, unit: year, requests_per_unit: 3}}
  - {key: vip, rate_limit: {name: vip, replaces: [{name: all}], unit: year, requests_per_unit: 9}}
  - {key: free, rate_limit: {replaces: [{name: all}, {name: vip}], unlimited: true}}
  - {key: idle, rate_limit: {name: idle, replaces: [{name: endless}], unit: year, requests_per_unit: 3}}
  - {key: endless, rate_limit: {name: endless, unlimited: true}}
  - {key: odd, rate_limit: {name: odd, replaces: [{name: nobody}], unit: year, requests_per_unit: 3}}
""",
}

# A sentence, the domain, and steps: QUESTION -> ANSWER.
ROWS = [
    # which limit applies
    ("an unknown domain has no limits", "nowhere", "user=ann -> OK: OK -"),
    ("a key that no rule has is not limited", "match", "other=x -> OK: OK -"),
    ("a value that no rule has is not limited if the key alone has no rule", "match", "only=that -> OK: OK -"),
    ("an exact value wins over wildcards and the key alone", "match", "path=/exact -> OK: OK 0 of 1/YEAR"),
    ("a wildcard wins over the key alone", "match", "path=/extra -> OK: OK 1 of 2/YEAR"),
    ("the key alone applies to every other value", "match", "path=/other -> OK: OK 2 of 3/YEAR"),
    ("upper and lower case differ", "match", "user=Ann -> OK: OK 4 of 5/YEAR", "user=ann -> OK: OK 0 of 1/YEAR",
     "User=ann -> OK: OK -"),
    ("an empty value is a value of the key alone", "match", "user= -> OK: OK 4 of 5/YEAR", "user= -> OK: OK 3 of 5/YEAR",
     "user=empty -> OK: OK 4 of 5/YEAR", "only= -> OK: OK -"),
    ("wildcards are tried in the order of the file", "stars", "path=abc -> OK: OK 0 of 1/YEAR"),
    ("a star stands for any characters or none", "stars", "path=a -> OK: OK 0 of 1/YEAR", "path=mid -> OK: OK 2 of 3/YEAR",
     "path=1mid2 -> OK: OK 2 of 3/YEAR", "path=/img/1.png -> OK: OK 4 of 5/YEAR", "path=.png -> OK: OK 4 of 5/YEAR",
     "any= -> OK: OK 5 of 6/YEAR", "any=x/y -> OK: OK 5 of 6/YEAR"),
    ("a pattern with several stars must match as a whole", "stars", "path=x1y2z -> OK: OK 3 of 4/YEAR",
     "path=xyz -> OK: OK 3 of 4/YEAR", "path=xzy -> OK: OK -", "path=xyz1 -> OK: OK -"),
    ("a dot stands for itself", "stars", "dot=abc -> OK: OK -", "dot=a.c -> OK: OK 6 of 7/YEAR"),
    ("a rule applies only at its own depth", "depth", "path=/d -> OK: OK 4 of 5/YEAR", "path=/d, user=u -> OK: OK 2 of 3/YEAR",
     "path=/d, user=u, more=m -> OK: OK -", "path=/deep -> OK: OK -", "path=/deep, user=u -> OK: OK -",
     "path=/deep, user=u, method=GET -> OK: OK 1 of 2/YEAR", "path=/leaf, user=u -> OK: OK -"),
    ("an exact node without the child hides the node of the key alone", "depth", "path=/d, method=GET -> OK: OK -",
     "path=/leaf, method=GET -> OK: OK -", "path=/else, method=GET -> OK: OK 3 of 4/YEAR"),
    ("a wildcard node without the child hides the node of the key alone", "depth", "tree=ab, method=GET -> OK: OK -",
     "tree=ab, user=u -> OK: OK 5 of 6/YEAR", "tree=b, method=GET -> OK: OK 7 of 8/YEAR"),
    ("the order of entries matters", "depth", "user=u, path=/d -> OK: OK -"),
    ("a key may be there twice, by position", "twice", "k=a, k=b -> OK: OK 1 of 2/YEAR", "k=b, k=a -> OK: OK 1 of 2/YEAR",
     "k=a, k=b -> OK: OK 0 of 2/YEAR", "k=a, k=b -> OVER: OVER 0 of 2/YEAR", "k=a -> OK: OK -"),

    # what is counted together
    ("each value counts by itself", "match", "user=v1 -> OK: OK 4 of 5/YEAR", "user=v2 -> OK: OK 4 of 5/YEAR",
     "user=v1 -> OK: OK 3 of 5/YEAR"),
    ("each value of a wildcard counts by itself", "share", "path=/each/a -> OK: OK 1 of 2/YEAR",
     "path=/each/b -> OK: OK 1 of 2/YEAR"),
    ("values of a wildcard with share_threshold count together", "share", "path=/files/a -> OK: OK 1 of 2/YEAR",
     "path=/files/b -> OK: OK 0 of 2/YEAR", "path=/files/c -> OVER: OVER 0 of 2/YEAR"),
    ("share_threshold holds for the limits below it", "share", "path=/tree/a, user=u -> OK: OK 1 of 2/YEAR",
     "path=/tree/b, user=u -> OK: OK 0 of 2/YEAR", "path=/tree/b, user=v -> OK: OK 1 of 2/YEAR"),
    ("each entry of a nested rule counts by itself", "depth", "path=/d, user=n1 -> OK: OK 2 of 3/YEAR",
     "path=/d, user=n2 -> OK: OK 2 of 3/YEAR"),
    ("domains count by themselves", "match", "user=domains -> OK: OK 4 of 5/YEAR"),
    ("domains count by themselves, even with the same entries", "twice", "user=domains -> OK: OK 2 of 3/YEAR"),

    # hits
    ("a request without hits is one hit", "numbers", "user=h1 -> OK: OK 9 of 10/YEAR", "hits=0; user=h1 -> OK: OK 8 of 10/YEAR"),
    ("hits of the request are taken from each descriptor", "numbers", "hits=3; user=h2 | user=h3 -> OK: OK 7 of 10/YEAR | OK 7 of 10/YEAR"),
    ("hits of a descriptor replace those of the request", "numbers", "hits=3; user=h4 *2 | user=h5 -> OK: OK 8 of 10/YEAR | OK 7 of 10/YEAR"),
    ("a descriptor with 0 hits only looks", "numbers", "user=h6 *4 -> OK: OK 6 of 10/YEAR", "user=h6 *0 -> OK: OK 6 of 10/YEAR",
     "hits=5; user=h6 *0 -> OK: OK 6 of 10/YEAR"),

    # numbers
    ("a limit of 0 denies", "numbers", "none=x -> OVER: OVER 0 of 0/YEAR"),
    ("the largest limit is exact", "numbers", "most=x -> OK: OK 4294967294 of 4294967295/YEAR",
     "most=x *4294967294 -> OK: OK 0 of 4294967295/YEAR", "most=x -> OVER: OVER 0 of 4294967295/YEAR"),
    ("an unlimited rule has no limit", "numbers", "free=x -> OK: OK unlimited", "free=x *4294967296 -> OK: OK unlimited"),
    ("units may be written in capitals", "numbers", "Unit=x -> OK: OK 0 of 1/YEAR", "UNIT=x -> OK: OK 0 of 1/YEAR"),
    ("keys about metrics and metadata are accepted", "numbers", "noted=x -> OK: OK 0 of 1/YEAR"),
    ("a limit in shadow mode counts and never denies", "numbers", "shadow=s -> OK: OK 0 of 1/YEAR",
     "shadow=s -> OK: OK 0 of 1/YEAR", "shadow=s *5 -> OK: OK 0 of 1/YEAR"),

    # limits that come with the request
    ("a limit of the descriptor needs no rule", "numbers", "own=x @2/YEAR -> OK: OK 1 of 2/YEAR",
     "own=x @2/YEAR -> OK: OK 0 of 2/YEAR", "own=x @2/YEAR -> OVER: OVER 0 of 2/YEAR", "own=y @2/YEAR -> OK: OK 1 of 2/YEAR"),
    ("a limit of the descriptor replaces that of the rules", "numbers", "user=o1 @2/YEAR -> OK: OK 1 of 2/YEAR",
     "none=o1 @2/YEAR -> OK: OK 1 of 2/YEAR", "free=o1 @2/YEAR -> OK: OK 1 of 2/YEAR"),
    ("a limit of the descriptor is not in shadow mode", "numbers", "shadow=o2 @1/YEAR -> OK: OK 0 of 1/YEAR",
     "shadow=o2 @1/YEAR -> OVER: OVER 0 of 1/YEAR"),
    ("a limit of the descriptor may be 0", "numbers", "user=o3 @0/YEAR -> OVER: OVER 0 of 0/YEAR"),
    ("a limit of the descriptor may be a week, which Envoy's own enum lacks", "numbers",
     "user=o6 @2/7 -> OK: OK 1 of 2/WEEK"),

    # several descriptors
    ("statuses have the number and the order of the descriptors", "several",
     "one=s1 | other=s1 | five=s1 | free=s1 | named=s1 -> "
     "OK: OK 0 of 1/YEAR | OK - | OK 4 of 5/YEAR | OK unlimited | OK 2 of 3/YEAR by-name"),
    ("a limit in shadow mode denies no other", "several", "dry=s5 | five=s5 -> OK: OK 0 of 1/YEAR | OK 4 of 5/YEAR",
     "dry=s5 | five=s5 -> OK: OK 0 of 1/YEAR | OK 3 of 5/YEAR"),
    ("quota limits deny only if all of them are over", "quota", "q1=a | q2=a -> OK: OK 0 of 1/YEAR | OK 1 of 2/YEAR",
     "q1=a | q2=a -> OK: OVER 0 of 1/YEAR | OK 0 of 2/YEAR", "q1=a | q2=a -> OVER: OVER 0 of 1/YEAR | OVER 0 of 2/YEAR"),
    ("an unlimited rule is none of the quota limits", "quota", "q1=d | free=d -> OK: OK 0 of 1/YEAR | OK unlimited",
     "q1=d | free=d -> OVER: OVER 0 of 1/YEAR | OK unlimited"),
    ("a limit that is replaced is neither asked nor charged", "replaces",
     "all=a | vip=a -> OK: OK - | OK 8 of 9/YEAR vip", "vip=a | all=a -> OK: OK 7 of 9/YEAR vip | OK -",
     "all=a -> OK: OK 2 of 3/YEAR all"),
    ("an unlimited rule replaces too", "replaces", "all=b | free=b | vip=b -> OK: OK - | OK unlimited | OK -"),
    ("an unlimited rule cannot be replaced", "replaces",
     "idle=d | endless=d -> OK: OK 2 of 3/YEAR idle | OK unlimited"),
    ("a name that no rule of the request has replaces nothing", "replaces",
     "all=c | odd=c -> OK: OK 2 of 3/YEAR all | OK 2 of 3/YEAR odd"),

    # requests that cannot be answered
    ("an empty domain is an error", "", "user=ann -> INVALID"),
    ("a request without descriptors is an error", "match", " -> INVALID"),
]

# Where weir differs from envoyproxy/ratelimit, on purpose; docs/migrate/envoy-ratelimit.md says how.
OURS = [
    ("a key a_b is not a key a with the value b", "twice", "a=b -> OK: OK 1 of 2/YEAR", "a_b=x -> OK: OK 0 of 1/YEAR",
     "a_b= -> OK: OK 0 of 1/YEAR", "a=b -> OK: OK 0 of 2/YEAR"),
    ("values that look like entries are not counted together", "twice", "p=1_q_2, q=3 -> OK: OK 1 of 2/YEAR",
     "p=1, q=2_q_3 -> OK: OK 1 of 2/YEAR"),
    ("more hits than are left are denied and take nothing", "numbers", "user=h7 *8 -> OK: OK 2 of 10/YEAR",
     "user=h7 *3 -> OVER: OVER 0 of 10/YEAR", "user=h7 *2 -> OK: OK 0 of 10/YEAR"),
    ("hits that can never fit are denied", "numbers", "user=h8 *11 -> OVER: OVER 0 of 10/YEAR",
     "hits=4294967295; user=h8 -> OVER: OVER 0 of 10/YEAR", "user=h8 *4611686018427387904 -> OVER: OVER 0 of 10/YEAR",
     "user=h8 -> OK: OK 9 of 10/YEAR"),
    ("negative hits are given back, up to the limit", "numbers", "user=h9 *6 -> OK: OK 4 of 10/YEAR",
     "user=h9 *-2 -> OK: OK 6 of 10/YEAR", "hits=3; user=h9 *- -> OK: OK 9 of 10/YEAR", "user=h9 *-7 -> OK: OK 10 of 10/YEAR",
     "user=h9 -> OK: OK 9 of 10/YEAR", "user=new *-7 -> OK: OK 10 of 10/YEAR", "user=h9 *-0 -> OK: OK 9 of 10/YEAR"),
    ("negative hits of a key that is over its limit make room", "numbers", "user=h10 *10 -> OK: OK 0 of 10/YEAR",
     "user=h10 -> OVER: OVER 0 of 10/YEAR", "user=h10 *-1 -> OK: OK 1 of 10/YEAR", "user=h10 -> OK: OK 0 of 10/YEAR"),
    ("negative hits give nothing back to a limit that the descriptor brings", "numbers",
     "user=o8 *3 @5/YEAR -> OK: OK 2 of 5/YEAR", "user=o8 *-2 @5/YEAR -> OK: OK 2 of 5/YEAR", "user=o8 *-2 @0/YEAR -> OK: OK 0 of 0/YEAR"),
    ("a look at a limit of which nothing is left is over", "numbers", "user=h11 *10 -> OK: OK 0 of 10/YEAR",
     "user=h11 *0 -> OVER: OVER 0 of 10/YEAR"),
    ("a limit of the descriptor needs no file that has its domain", "nowhere", "user=o5 @2/YEAR -> OK: OK 1 of 2/YEAR"),
    ("a limit of the descriptor needs a unit", "numbers", "user=o7 @2/UNKNOWN -> INVALID", "user=o7 @2/8 -> INVALID"),
    ("one descriptor over its limit denies the request", "several", "one=s2 -> OK: OK 0 of 1/YEAR",
     "five=s2 | one=s2 -> OVER: OK 5 of 5/YEAR | OVER 0 of 1/YEAR"),
    ("a denied request takes nothing from any descriptor", "several", "one=s3 | five=s3 -> OK: OK 0 of 1/YEAR | OK 4 of 5/YEAR",
     "one=s3 | five=s3 -> OVER: OVER 0 of 1/YEAR | OK 4 of 5/YEAR", "five=s3 *0 -> OK: OK 4 of 5/YEAR"),
    ("one quota limit alone denies", "quota", "q1=b | plain=b -> OK: OK 0 of 1/YEAR | OK 2 of 3/YEAR",
     "q1=b | plain=b -> OVER: OVER 0 of 1/YEAR | OK 2 of 3/YEAR"),
    ("a plain limit denies whatever the quota limits say", "quota", "plain=c *3 -> OK: OK 0 of 3/YEAR",
     "q1=c | plain=c -> OVER: OK 1 of 1/YEAR | OVER 0 of 3/YEAR", "q1=c -> OK: OK 0 of 1/YEAR"),
    ("a descriptor without entries is an error", "match", "user=bad |  -> INVALID", "user=bad -> OK: OK 4 of 5/YEAR"),
    ("an entry without a key is an error", "match", "=x -> INVALID", "user=bad2, =x -> INVALID"),
]


def yaml_of(domain, descriptors):
    limits = re.sub(r"\bL(\d+)", r"rate_limit: {unit: year, requests_per_unit: \1}", descriptors)
    return "domain: %s\ndescriptors:%s" % (domain, limits)


def check_rows(where, world):
    """Asks all questions, and returns how many lines failed."""
    failed = 0
    for sentence, domain, *steps in ROWS + OURS:
        if len(sys.argv) > 1 and not any(word in sentence for word in sys.argv[1:]):
            continue
        try:
            world.expect(domain, *steps)
            print("ok      ", where, sentence, flush=True)
        except AssertionError as e:
            failed += 1
            print("FAILED  ", where, sentence + "\n  ", e, flush=True)
    world.close()
    return failed


def main():
    files = {name + ".yaml": yaml_of(name, text) for name, text in DOMAINS.items()}
    files["numbers.yaml"] += "envoy: {negative_hits: true}\n"
    failed = check_rows("memory:", World(files))
    if shutil.which("redis-server") is None:
        print("redis-server is missing", file=sys.stderr)
    else:
        redis, url = start_redis(World.scratch())
        world = World(files, rules="store: {url: '%s', deadline: 10s}\n" % url)
        until("the store is there", lambda: "the store is there" in world.server.log())
        failed += check_rows("store: ", world)
        redis.kill()
    print("%d lines failed of %d" % (failed, len(ROWS + OURS)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
