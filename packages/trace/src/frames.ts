import type { Chain, Frame, Walk } from "./walk.ts";

export function enterChain(walk: Walk, frame: Frame, index: number): void {
  walk.frame = frame;
  walk.index = index;
}

/** @returns the policy where there is nothing to return to */
export function leaveChain(walk: Walk): Chain["policy"] | undefined {
  const frame = walk.frame;
  if (frame?.returnTo !== undefined) {
    enterChain(walk, frame.returnTo.frame, frame.returnTo.index);
    return undefined;
  }
  return bottom(frame)?.chain.policy ?? "ACCEPT";
}

/** The built-in chain: a chain entered by goto from there has nothing to return to but the policy. */
function bottom(frame: Frame | undefined): Frame | undefined {
  let at = frame;
  while (at?.from !== undefined) at = at.from;
  return at;
}

/** Whether the frame is of the chain, or was come to from there. */
export function isAbove(chain: Chain, frame: Frame): boolean {
  for (let at: Frame | undefined = frame; at !== undefined; at = at.from) if (at.chain === chain) return true;
  return false;
}

export function loopText(chain: Chain, frame: Frame): string {
  const names = [chain.name];
  for (let at: Frame | undefined = frame; at !== undefined && at.chain !== chain; at = at.from)
    names.unshift(at.chain.name);
  return [chain.name, ...names].join(" → ");
}
