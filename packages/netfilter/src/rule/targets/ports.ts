import { checkValue } from "../check.ts";
import type { RawOption } from "../raw.ts";

/** What MASQUERADE and REDIRECT have in common. */
export interface PortsAndRandom {
  readonly toPorts?: string;
  readonly random?: boolean;
}

export function portsAndRandom(options: ReadonlyMap<string, RawOption>): PortsAndRandom {
  const toPorts = options.get("--to-ports")?.values[0];
  return { ...(toPorts === undefined ? {} : { toPorts }), ...(options.has("--random") ? { random: true } : {}) };
}

export function renderPortsAndRandom({ toPorts, random }: PortsAndRandom): string {
  const ports = toPorts === undefined ? "" : ` --to-ports ${checkValue("ports", toPorts)}`;
  return `${ports}${random === true ? " --random" : ""}`;
}
