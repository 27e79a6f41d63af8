import type { KernelVersion } from "@fairlead/lab/qemu/kernel-versions";
import { NODE } from "../qemu/guest.ts";
import { OUTSIDE } from "./ground.ts";
import { runOnNode } from "./objects.ts";

/** What becomes of devices while the agent serves, and whether the flowtable of IPv4 then has which one. */
export const STEPS = {
  "a device that comes": {
    lines: [`ip -n ${NODE} link add cali-7 type veth peer name peer-7`],
    has: "cali-7",
  },
  "a device that is renamed, and no longer named in devices": {
    lines: [`ip -n ${NODE} link set cali-7 name other-7`],
    hasNot: "7",
  },
  "a device that is renamed, and named in devices now": {
    lines: [`ip -n ${NODE} link set other-7 name cali-8`],
    has: "cali-8",
  },
  "a device that goes to another network namespace": {
    lines: [`ip -n ${NODE} link set cali-8 netns ${OUTSIDE}`],
    hasNot: "cali-8",
  },
  "the same, back": {
    lines: [`ip -n ${OUTSIDE} link set cali-8 netns ${NODE}`],
    has: "cali-8",
  },
  "a device that goes to another network namespace and comes back at once": {
    lines: [`ip -n ${NODE} link set cali-8 netns ${OUTSIDE}`, `ip -n ${OUTSIDE} link set cali-8 netns ${NODE}`],
    has: "cali-8",
  },
} as const satisfies Record<string, Step>;

interface Step {
  readonly lines: readonly string[];
  /** A part of a device's name. */
  readonly has?: string;
  readonly hasNot?: string;
}

/**
 * The agent has the rights that deploy/ gives it, and the result of an init container. Waits after each step until the
 * flowtable is as it has to be.
 *
 * @returns what the script printed: each step's name once it is
 * @throws Error with the agent's log where the flowtable does not become so
 */
export function followDevices(version: KernelVersion): Promise<string> {
  return runOnNode(version, [
    'flowtable_has() { devices ip | grep -q -e "$1"; }',
    'flowtable_lacks() { ! flowtable_has "$1"; }',
    "init_only fast",
    "start_agent fast",
    ...Object.entries<Step>(STEPS).flatMap(([name, { lines, has, hasNot }]) => [
      ...lines,
      ...(has === undefined ? [] : [`wait_until "${name}" flowtable_has ${has}`]),
      ...(hasNot === undefined ? [] : [`wait_until "${name}" flowtable_lacks ${hasNot}`]),
      `echo "${name}"`,
    ]),
  ]);
}
