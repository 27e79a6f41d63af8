import { createSocket } from "node:dgram";
import { createRunner, createTally } from "../../src/index.ts";

/**
 * Run in a namespace: what the kernel says of some chains of nat after each of some changes, a line of JSON each.
 * Usage: tally-main.ts VARIANT FAMILY
 */
const family = process.argv[3] === "IPv6" ? "IPv6" : "IPv4";
const variant = process.argv[2] === "legacy" ? "legacy" : "nft";
const runner = createRunner();
/** One that the rules count. */
const sendPacket = async () => {
  const socket = createSocket(family === "IPv4" ? "udp4" : "udp6");
  await new Promise<void>((resolve) =>
    socket.send("packet", 9, family === "IPv4" ? "127.0.0.1" : "::1", () => resolve()),
  );
  socket.close();
};
const tally = createTally(family, variant);
const steps = [
  ":ONE - [0:0]\n:TWO - [0:0]\n-A ONE -j RETURN\n-A OUTPUT -j ONE\n",
  "-A TWO -j RETURN\n",
  "",
  "-R ONE 1 -j ACCEPT\n",
  "-D TWO 1\n",
  "-X TWO\n",
  `:ONE - [0:0]\n${"-A ONE -j RETURN\n".repeat(2000)}`,
];
for (const step of steps) {
  if (step === "") await sendPacket();
  const argv = [`${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-restore`, "--noflush", "-w", "5"] as const;
  await runner.run(argv, { input: `*nat\n${step}COMMIT\n` });
  const reported = await tally("nat", ["ONE", "TWO", "OUTPUT", "NONE"]);
  process.stdout.write(`${JSON.stringify(reported && Object.fromEntries(reported))}\n`);
}
