import { createRunner, openKernelReader, type Runner } from "../src/index.ts";

/**
 * Run in a namespace: a proxy's rules are changed step by step, and read twice after each. Prints a line of JSON for
 * each step: what the chain has then, and how many listings it took.
 * Usage: reading-rules-main.ts VARIANT FAMILY
 */
const variant = process.argv[2] === "legacy" ? "legacy" : "nft";
const family = process.argv[3] === "IPv6" ? "IPv6" : "IPv4";
const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}`;
const plain = createRunner();
let listings = 0;
const counting: Runner = {
  run: plain.run,
  stream: (argv, options) => {
    if (argv[0] === `${tool}-save` && argv.length === 1) listings += 1;
    return plain.stream(argv, options);
  },
};
const HINT = "*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n";
const CHAIN = "*nat\n:KUBE-SERVICES - [0:0]\n";
const STEPS = [
  `${HINT}${CHAIN}-A KUBE-SERVICES -j ACCEPT\nCOMMIT\n`,
  "*nat\n-R KUBE-SERVICES 1 -j RETURN\nCOMMIT\n",
  "*filter\n-A INPUT -j ACCEPT\nCOMMIT\n",
  "*nat\n-F KUBE-SERVICES\nCOMMIT\n",
];
const kernel = openKernelReader(counting);
for (const step of STEPS) {
  await plain.run([`${tool}-restore`, "--noflush", "-w", "5"], { input: step });
  listings = 0;
  const readings = [await kernel.rules(family), await kernel.rules(family)];
  const texts = readings.map((rules) => rules.get("nat")?.chains.get("KUBE-SERVICES")?.texts);
  process.stdout.write(`${JSON.stringify({ texts, filter: readings[1]?.has("filter"), listings })}\n`);
}
listings = 0;
for (let turn = 0; turn < 60; turn++) await kernel.rules(family);
process.stdout.write(`${JSON.stringify({ listings })}\n`);
await kernel.close();
