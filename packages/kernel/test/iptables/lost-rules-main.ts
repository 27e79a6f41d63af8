import { createRuleCounts, createRunner, openIptables } from "../../src/index.ts";

/**
 * Run in a namespace: whether rules went after each of some steps, a line each. Usage: lost-rules-main.ts VARIANT
 */
const variant = process.argv[2] === "legacy" ? "legacy" : "nft";
const runner = createRunner();
const port = await openIptables(runner, { family: "IPv4", variant, ruleCounts: createRuleCounts });
const foreign = (...args: readonly string[]) => runner.run([`iptables-${variant}`, "-w", "5", "-t", "nat", ...args]);
const own = (text: string) => port.restore(`*nat\n${text}COMMIT\n`);

const STEPS: Readonly<Record<string, () => Promise<unknown>>> = {
  nothing: async () => {},
  written: () => own(":MINE - [0:0]\n-A MINE -j RETURN\n-A MINE -j ACCEPT\n-A PREROUTING -j MINE\n"),
  still: async () => {},
  again: async () => {},
  added: () => foreign("-A", "OUTPUT", "-j", "ACCEPT"),
  less: () => own("-D MINE -j RETURN\n"),
  rest: async () => {},
  chain: () => foreign("-F", "MINE"),
  after: async () => {},
  jump: () => foreign("-D", "PREROUTING", "-j", "MINE"),
  all: () => foreign("-F"),
};
for (const [name, step] of Object.entries(STEPS)) {
  await step();
  const lost = await port.lost?.({ nat: ["PREROUTING", "OUTPUT", "MINE"] });
  if (lost !== false) process.stdout.write(`${name}: ${lost}\n`);
}
