import { setTimeout as sleep } from "node:timers/promises";
import { askAll, type Line, load, ownAddresses, type Role, serve } from "./pod.ts";

/** Milliseconds between two rounds. */
const ROUND_MS = 1_000;

// `node --input-type=module -e SCRIPT ROLE`: there is no file in the pod.
const role: Role = JSON.parse(process.argv[1] ?? "");
const print = (line: Line) => void process.stdout.write(`${JSON.stringify(line)}\n`);
if (role.kind === "serve") serve(role.name, role.port);
else {
  // A container that ends would be started again, or its pod be not ready.
  setInterval(() => {}, 1 << 30);
  process.once("SIGTERM", () => process.exit(0));
  if (role.kind === "ask") {
    const asking = { patienceMs: role.patienceMs, own: ownAddresses() };
    do {
      await askAll(role.probes, asking, (observed) => print({ kind: "observed", ...observed }));
      print({ kind: "done" });
      await sleep(ROUND_MS);
    } while (role.forever === true);
  } else await load(role.address, role.port, role.until, print);
}
