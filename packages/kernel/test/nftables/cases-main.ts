import { openNftables } from "../../src/index.ts";
import { cases } from "./cases.ts";
import { runCase } from "./run-case.ts";

/** Runs in a namespace of its own: all cases in both families, whose outcomes it prints. */
const client = await openNftables();
const OUTCOMES: Record<string, unknown> = {};
for (const family of ["ip", "ip6"] as const) {
  for (const given of cases) OUTCOMES[`${family} ${given.name}`] = await runCase(client, family, given);
}
await client.close();
process.stdout.write(JSON.stringify(OUTCOMES));
