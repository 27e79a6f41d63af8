/** Numbers from 0 to below 1 by a generator with a seed: what a simulation shows does not depend on luck. */
export function seeded(seed = 1): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
