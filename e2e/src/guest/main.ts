import { openLab } from "@fairlead/lab/plain/lab";
import { conformanceTable } from "@fairlead/testkit";
import { bothPorts, portsOf } from "../cases/conformance/programmed.ts";
import { flowPorts } from "../cases/flows.ts";
import { suites } from "./suites.ts";

/**
 * Runs in the guest: the suites that are named, on one test ground. Every report is a line of JSON on standard output;
 * how long each suite took goes to standard error.
 */
await using lab = await openLab(bothPorts(portsOf(conformanceTable), flowPorts));
for (const name of process.argv.slice(2)) {
  const suite = suites.get(name);
  if (suite === undefined) throw new Error(`there is no suite ${name}`);
  const started = performance.now();
  for await (const report of suite.run(lab)) process.stdout.write(`${JSON.stringify(report)}\n`);
  process.stderr.write(`${name}: ${Math.round(performance.now() - started)} ms\n`);
}
