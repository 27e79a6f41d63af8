import { createSocket } from "node:dgram";
import { createGlance, createRunner } from "../../src/index.ts";

/**
 * Run in a namespace: what the kernel says of nat after each of some changes and after a packet, a line of JSON each.
 * Usage: glance-main.ts VARIANT FAMILY
 */
const family = process.argv[3] === "IPv6" ? "IPv6" : "IPv4";
const variant = process.argv[2] === "legacy" ? "legacy" : "nft";
const runner = createRunner();
const restore = async (text: string) => {
  const argv = [`${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-restore`, "--noflush", "-w", "5"] as const;
  await runner.run(argv, { input: `*nat\n${text}COMMIT\n` });
};
/** One that the rules count. */
const sendPacket = async () => {
  const socket = createSocket(family === "IPv4" ? "udp4" : "udp6");
  const host = family === "IPv4" ? "127.0.0.1" : "::1";
  await new Promise<void>((resolve) => socket.send("packet", 9, host, () => resolve()));
  socket.close();
};
const glance = createGlance(family, variant);
const STEPS = [
  "-A OUTPUT -j ACCEPT\n",
  "",
  "-S OUTPUT\n",
  ":MINE - [0:0]\n-A MINE -j RETURN\n-A OUTPUT -j MINE\n",
  "-R MINE 1 -j ACCEPT\n",
  "-F\n",
];
for (const step of STEPS) {
  await (step === "" ? sendPacket() : restore(step));
  process.stdout.write(`${JSON.stringify(await glance("nat"))}\n`);
}
