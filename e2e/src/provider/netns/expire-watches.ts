import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { IPFamily } from "@fairlead/core";
import { execa } from "execa";
import type { Certificate } from "../../control-plane/control-plane.ts";
import { runnerIn } from "../../lab/apply.ts";
import { cutArgv } from "../../lab/cut.ts";
import { fabricAddress } from "./addresses.ts";
import type { Ground } from "./ground.ts";

const GATE = fileURLToPath(new URL("../../control-plane/gone-main.ts", import.meta.url));
const API_PORT = "6443";
const GATE_PORT = "6444";
const tools: Readonly<Record<IPFamily, string>> = { IPv4: "iptables", IPv6: "ip6tables" };

/**
 * Leads what nodes send to the API server to a gate that ends every watch with 410 Gone, for so long.
 *
 * @returns how many watches it has ended
 */
export async function expireWatches(ground: Ground, certificate: Certificate, ms: number): Promise<number> {
  const { fabric, families, nodes } = ground;
  const [family = "IPv4"] = families;
  const runner = runnerIn(fabric);
  const [program = "nsenter", ...prefix] = fabric.argvPrefix;
  const files = [certificate.certFile, certificate.keyFile];
  const args = ["--no-warnings", GATE, ...files, GATE_PORT, fabricAddress[family], API_PORT];
  const gate = execa(program, [...prefix, process.execPath, ...args], { buffer: { stdout: false }, reject: false });
  const lines = createInterface({ input: gate.stdout });
  const rule = ["PREROUTING", "-i", "br0", "-p", "tcp", "--dport", API_PORT, "-j", "REDIRECT", "--to-ports", GATE_PORT];
  const ended = gate.then(({ stderr }): never => {
    throw new Error(`the gate before the API server has ended: ${stderr}`);
  });
  // Heeded where it is waited for.
  ended.catch(() => {});
  try {
    await Promise.race([once(lines, "line"), ended]);
    await runner.run([tools[family], "-t", "nat", "-A", ...rule]);
    for (const { addresses } of nodes) {
      await runner.run(cutArgv(API_PORT, addresses[family] ?? ""));
    }
    await sleep(ms);
    const told = once(lines, "line");
    gate.stdin.end();
    const [count] = await Promise.race([told, ended]);
    return Number(count);
  } finally {
    gate.kill("SIGKILL");
    await runner.run([tools[family], "-t", "nat", "-D", ...rule]);
  }
}
