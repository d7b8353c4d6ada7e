// What is told of one key: its state at one instant, and whether it is in use. `weir watch` has the same logic and the
// same words (src/cli/watch/key_state.c); both are held to tests/golden/key_states.json.
//
// A poll is {sent, came, answer}: times in ms of one clock around the question, and the server's answer, with verdict,
// reason, quota, remaining, retry_after_ms, reset_after_ms and blocked_ms. `even` is the number of units that come back in
// a ms, if they come back evenly, as those of buckets do; otherwise null.

import { count, duration, exact } from "./format.js";

// Polls that are kept to tell the use: three pauses between them.
export const POLLS_KEPT = 4;
// The server rounds times up to a ms, and clocks have grains of their own.
const ROUNDING_MS = 2;

export function evenOf(algorithm, item) {
    return /bucket/.test(algorithm) && item?.count > 0 ? item.count / item.period_ms : null;
}

// What is denied because the store is away has the same numbers for every key: they are not those of this one.
const isKnown = (answer) => answer.remaining !== null && answer.remaining !== undefined && answer.remaining >= 0 && answer.reason !== "store";

// ---- in use ---------------------------------------------------------------

// What was taken between two polls: {units, time}; units null: some, but it cannot be told how many. null: none is seen.
// The server answered at some time between `sent` and `came`, so at least `least` ms have passed between the answers.
function takenBetween(a, b, even) {
    const [before, now] = [a.answer, b.answer];
    const least = b.sent - a.came;
    const time = (least + b.came - a.sent) / 2;
    if (!isKnown(before) || !isKnown(now) || before.quota !== now.quota || before.blocked_ms !== 0 || now.blocked_ms !== 0) {
        return null;
    }
    const drop = before.remaining - now.remaining;
    const late = now.reset_after_ms - Math.max(0, before.reset_after_ms - least);
    if (drop <= 0 && late <= ROUNDING_MS) {
        return { units: 0, time };
    }
    if (even === null) {
        return { units: drop > 0 ? drop : null, time };
    }
    // A bucket that was full in between hides what was taken before.
    const wasFull = before.reset_after_ms <= time;
    return { units: wasFull ? null : Math.max(0, now.reset_after_ms - before.reset_after_ms + time) * even, time };
}

// Of the last polls: null (not in use, as far as they show), or {rate}: units per second, of the pauses up to the last in
// which they can be told; null: not known.
export function useOf(polls, even) {
    const taken = polls.slice(1).map((poll, i) => takenBetween(polls[i], poll, even)).filter(Boolean);
    if (taken.every((t) => t.units === 0)) {
        return null;
    }
    const told = taken.slice(taken.findLastIndex((t) => t.units === null) + 1);
    const [units, time] = [told.reduce((sum, t) => sum + t.units, 0), told.reduce((sum, t) => sum + t.time, 0)];
    return { rate: units > 0 && time > 0 ? (1000 * units) / time : null };
}

// ---- the state at one instant ---------------------------------------------

// A bucket refills by itself until its verdict changes, and then has what the request takes. What else would change cannot
// be told, so that time stops a ms before.
function refilled(answer, age, even) {
    const retry = answer.retry_after_ms;
    const levelAt = (ms) => answer.quota - Math.max(0, answer.reset_after_ms - ms) * even;
    const floor = Math.max(answer.remaining, Math.floor(levelAt(age) + 1e-6));
    if (answer.verdict !== "deny" || retry === null) {
        return { verdict: answer.verdict, units: floor, level: levelAt(age) };
    }
    const needed = Math.max(1, Math.round(levelAt(retry)));
    return age < retry ? { verdict: "deny", units: Math.min(floor, needed - 1), level: levelAt(age) } : { verdict: "allow", units: Math.max(floor, needed), level: levelAt(age) };
}

const left = (ms, age, least) => (ms === null || ms < 0 || ms === 0 ? ms : Math.max(least, Math.ceil(ms - age)));

// The state `age` ms after the poll came, or of the poll itself if the key is in use: verdict, numbers and words belong
// together. `even` as above, `use` as useOf() returns it.
export function stateAt(answer, age, even, use) {
    const isBlocked = answer.blocked_ms !== 0 && answer.blocked_ms !== null && answer.blocked_ms !== undefined;
    const grows = even !== null && !isBlocked && isKnown(answer) && answer.reset_after_ms !== null;
    const passed = use ? 0 : age;
    const now = grows ? refilled(answer, passed, even) : { verdict: answer.verdict, units: answer.remaining, level: answer.remaining };
    const state = {
        verdict: now.verdict, isBlocked, isKnown: isKnown(answer), units: now.units, quota: answer.quota,
        part: isBlocked || !isKnown(answer) ? 0 : Math.max(0, Math.min(1, now.level / answer.quota)),
        owed: grows && now.level < -0.999 ? Math.round(-now.level) : 0,
        retry_ms: left(answer.retry_after_ms, passed, grows ? 0 : 1),
        reset_ms: left(answer.reset_after_ms, passed, grows ? 0 : 1),
        blocked_ms: left(answer.blocked_ms, age, 1),
        use,
    };
    return { ...state, words: wordsOf(state) };
}

// ---- words ----------------------------------------------------------------

const perSecond = (rate) => (rate >= 0.95 ? count(Math.round(rate)) : rate >= 0.095 ? rate.toFixed(1) : "less than 0.1");

export function useWords(use) {
    return !use ? "no use seen" : use.rate === null ? "in use" : `in use, about ${perSecond(use.rate)}/s`;
}

const timeWords = (ms, zero) => (ms === 0 ? zero : ms === null || ms === undefined ? "never" : `in ${duration(ms)}`);

function leftWords(s) {
    if (s.isBlocked) {
        return "blocked";
    }
    return s.isKnown ? `${exact(s.units)} of ${exact(s.quota)} left${s.owed > 0 ? `, owes ${exact(s.owed)}` : ""}` : "not known on this node";
}

function wordsOf(s) {
    return {
        left: leftWords(s),
        retry: s.isKnown ? timeWords(s.retry_ms, "now") : "–",
        reset: s.isKnown ? timeWords(s.reset_ms, "fresh") : "–",
        use: s.isKnown ? useWords(s.use) : "use not known",
    };
}
