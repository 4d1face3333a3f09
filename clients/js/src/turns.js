// Turns: work that waits until earlier work is done.

/** @type {Map<string, Promise<unknown>>} */
const turns = new Map();

/**
 * One after the other among the clients of this program; tabs and other programs are kept apart by the storage.
 *
 * @template T
 * @param {string} name
 * @param {() => T | PromiseLike<T>} work
 * @returns {Promise<T>}
 */
export function inTurn(name, work) {
  const turn = (turns.get(name) ?? Promise.resolve()).then(work);
  const over = turn.then(
    () => {},
    () => {},
  );
  turns.set(name, over);
  over.then(() => {
    if (turns.get(name) === over) turns.delete(name);
  });
  return turn;
}

/** @param {number} seconds @returns {Promise<void>} */
export const sleep = (seconds) =>
  new Promise((done) => {
    setTimeout(done, 1000 * seconds);
  });
