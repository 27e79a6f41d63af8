import { createGlance, createRunner } from "../../src/index.ts";

/** Run in a namespace: what the kernel says of nat after each of some changes, a line of JSON each. Usage: glance-main.ts VARIANT */
const variant = process.argv[2] === "legacy" ? "legacy" : "nft";
const runner = createRunner();
const restore = async (text: string) => {
  const argv = [`iptables-${variant}-restore`, "--noflush", "-w", "5"] as const;
  await runner.run(argv, { input: `*nat\n${text}COMMIT\n` });
};
const glance = createGlance("IPv4", variant);
const steps = ["-A OUTPUT -j ACCEPT\n", "", ":MINE - [0:0]\n-A MINE -j RETURN\n-A OUTPUT -j MINE\n", "-F\n"];
for (const step of steps) {
  if (step !== "") await restore(step);
  process.stdout.write(`${JSON.stringify(await glance("nat"))}\n`);
}
