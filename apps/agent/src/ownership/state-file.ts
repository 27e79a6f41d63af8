import { join } from "node:path";

/** What outlives an agent in its state folder: who owned which service, and the networks that were learnt last. */
const FILES = { memory: "ownership.json", networks: "networks.json" } as const;

/** Where it is kept; undefined: nowhere, as there is no folder. */
export function stateFile(stateDir: string, what: keyof typeof FILES): string | undefined {
  return stateDir === "" ? undefined : join(stateDir, FILES[what]);
}
