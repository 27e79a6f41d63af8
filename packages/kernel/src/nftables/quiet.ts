import type { Listener } from "./listener.ts";

/**
 * Carries out a large transaction while this process does not listen: the kernel would make a message of each element
 * (0.3 s become 1.9 s). That no other program did anything meanwhile, the generation says; where it does not, it is
 * told as lost.
 */
export async function quietly(
  listeners: ReadonlySet<Listener>,
  generation: () => Promise<number>,
  work: () => Promise<void>,
): Promise<void> {
  let expected = await generation();
  for (const listener of listeners) listener.rest();
  try {
    await work();
    expected += 1;
  } finally {
    for (const listener of listeners) listener.resume();
    const unexpected = (await generation()) !== expected;
    if (unexpected) for (const listener of listeners) listener.lose();
  }
}
