import type { Client } from "../../provider/node.ts";
import type { Target } from "../expect.ts";
import type { Scene } from "../scene.ts";

/** A service that changes hands, as somebody sees it who asks it all the while. */
interface Asked {
  readonly from: Client;
  readonly target: Target;
}

const ASKED = { protocol: "TCP", count: 4, parallel: 2, timeoutMs: 5_000 } as const;

/** Asks from now on until nobody answers any more. @returns after how many milliseconds the last answer came */
export async function untilLeft(scene: Scene, asked: Asked): Promise<number> {
  const began = now();
  let last = began;
  await scene.until(`${asked.target.to} to be left alone`, async () => {
    const answers = await answersOf(asked);
    last = Math.max(last, ...answers);
    return answers.length === 0 ? undefined : "an answer";
  });
  return last - began;
}

/** Asks from now on until somebody answers. @returns after how many milliseconds that was */
export async function untilServed(scene: Scene, asked: Asked): Promise<number> {
  const began = now();
  let first = Number.POSITIVE_INFINITY;
  await scene.until(`${asked.target.to} to be served`, async () => {
    first = Math.min(...(await answersOf(asked)));
    return Number.isFinite(first) ? undefined : "no answer";
  });
  return first - began;
}

/** When each answer of a round came. */
async function answersOf({ from, target }: Asked): Promise<readonly number[]> {
  const results = await from.send({ ...ASKED, ...target });
  return results.filter(({ kind }) => kind === "answer").map(({ at }) => at);
}

/** As those who ask tell the time, who may be in another process. */
function now(): number {
  return performance.timeOrigin + performance.now();
}
