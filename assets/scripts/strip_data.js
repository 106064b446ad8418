// Questions to the server: answers are kept, and one that a newer question of its channel has overtaken is dropped.

const KEPT_ANSWERS = 120;

export function makeData(server, onError) {
  const kept = new Map();
  const newest = {};

  function fetched(key, name, request) {
    if (kept.has(key)) return kept.get(key);
    const answer = server[name](request)
      .catch(() => undefined)
      .then((reply) => reply || { error: "The server did not answer; try again in a moment." })
      .then((reply) => {
        if (reply.error) kept.delete(key);
        return reply;
      });
    kept.set(key, answer);
    if (kept.size > KEPT_ANSWERS) kept.delete(kept.keys().next().value);
    return answer;
  }

  // `questions`: [[function, request], ...]. `state` names what the numbers depend on beyond the request: the same look of the same run
  // holds other numbers after going back and choosing differently. Returns the answers, or null when overtaken or refused.
  return async function ask(channel, state, questions) {
    const turn = (newest[channel] = (newest[channel] || 0) + 1);
    const answers = await Promise.all(questions.map(([name, request]) => fetched(JSON.stringify([state, name, request]), name, request)));
    if (newest[channel] !== turn) return null;
    const refused = answers.find((answer) => answer.error);
    onError(refused ? refused.error : "");
    return refused ? null : answers;
  };
}

// At most one call every `pause` milliseconds, the last one never lost.
export function throttled(call, pause) {
  let timer = null;
  let again = false;
  return function run() {
    if (timer !== null) {
      again = true;
      return;
    }
    call();
    timer = setTimeout(() => {
      timer = null;
      if (again) {
        again = false;
        run();
      }
    }, pause);
  };
}

export function debounced(call, pause) {
  let timer = null;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...values), pause);
  };
}
