// Questions to the server: answers are kept, and one that a newer question of its channel has overtaken is dropped.

import { needed } from "./elements.js";

const KEPT_ANSWERS = 120;

// `channel`: whose questions overtake one another. `state`: what the numbers depend on beyond the request; the same look of the same run holds
// other numbers after going back and choosing differently. Gives the answers, or null when overtaken or refused.
/** @param {Server} server @param {(sentence: string) => void} onError @returns {Ask} */
export function makeData(server, onError) {
  /** @type {Partial<MapServer>} */
  const functions = server;
  /** @type {Map<string, Promise<Reply<keyof MapQuestions>>>} */
  const kept = new Map();
  /** @type {Record<string, number>} */
  const newest = {};

  /** @template {keyof MapQuestions} K @param {string} key @param {K} name @param {MapQuestions[K][0]} request @returns {Promise<Reply<K>>} */
  function fetched(key, name, request) {
    const before = kept.get(key);
    if (before) return before;
    const answer = needed(functions[name], name)(request)
      .catch(() => undefined)
      .then((reply) => reply || { error: "The server did not answer; try again in a moment." })
      .then((reply) => {
        if ("error" in reply) kept.delete(key);
        return reply;
      });
    kept.set(key, answer);
    const [oldest] = kept.keys();
    if (kept.size > KEPT_ANSWERS) kept.delete(oldest);
    return answer;
  }

  return async (channel, state, name, requests) => {
    const turn = (newest[channel] = (newest[channel] || 0) + 1);
    const replies = await Promise.all(requests.map((request) => fetched(JSON.stringify([state, name, request]), name, request)));
    if (newest[channel] !== turn) return null;
    const answers = [];
    for (const reply of replies) {
      if ("error" in reply) {
        onError(reply.error);
        return null;
      }
      answers.push(reply);
    }
    onError("");
    return answers;
  };
}

// At most one call every `pause` milliseconds, the last one never lost.
/** @param {() => void} call @param {number} pause */
export function throttled(call, pause) {
  let waits = false;
  let again = false;
  return function run() {
    if (waits) {
      again = true;
      return;
    }
    call();
    waits = true;
    setTimeout(() => {
      waits = false;
      if (again) {
        again = false;
        run();
      }
    }, pause);
  };
}

/** @param {() => void} call @param {number} pause */
export function debounced(call, pause) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(call, pause);
  };
}
