/**
 * How long the built tool takes over 10,000 services of 10 endpoints: their 320,000 rules come from a file, as
 * iptables-save would print them. Build first (pnpm build).
 *
 *   pnpm exec node --conditions=@fairlead/source bench/large.ts [services] [endpoints]
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toEnd } from "@fairlead/base";
import { CommandError, createRunner } from "@fairlead/kernel";
import { endpointSlice, kubernetesService, type RawObject, service } from "@fairlead/testkit";
import { restored } from "@fairlead/verify";

const [services = 10_000, endpoints = 10] = process.argv.slice(2).map(Number);
const program = join(import.meta.dirname, "..", "dist", "main.js");
const NODE = ["--node", "node-a", "--node-address", "10.201.0.10", "--cluster-cidr", "10.144.0.0/12"];
const folder = mkdtempSync(join(tmpdir(), "fairlead-large-"));

try {
  const [objects, rules] = [join(folder, "objects.json"), join(folder, "rules")];
  writeFileSync(objects, JSON.stringify([...kubernetesService(), ...workload()]));
  const plan = await fairlead("plan", "-f", objects, "--without-counters", ...NODE);
  writeFileSync(rules, saved(plan));
  // The page cache is warm from here on.
  for (const to of ["10.96.1.9:80", "10.96.39.15:80"]) {
    await timed(`trace to ${to}`, "trace", "--rules", rules, "--from", "pod", "--to", to, ...NODE.slice(2));
  }
  await timed("explain", "explain", "default/service-7", "-f", objects, "--rules", rules, ...NODE);
  await timed("verify, all well", "verify", "-f", objects, "--rules", rules, ...NODE);
  const damaged = join(folder, "damaged");
  writeFileSync(damaged, saved(plan).replace("--to-destination 10.144.0.1:", "--to-destination 10.144.250.250:"));
  await timed(
    "diff, one endpoint elsewhere",
    "diff",
    rules,
    damaged,
    "--traffic-only",
    "--node-address",
    "10.201.0.10",
  );
  writeFileSync(damaged, saved(plan).replace(/^-A KUBE-SEP-\S+ -p tcp .*DNAT.*\n/m, ""));
  await timed("verify, one rule missing", "verify", "-f", objects, "--rules", damaged, ...NODE);
  writeFileSync(
    damaged,
    saved(plan).replace("-A PREROUTING", "-A PREROUTING -s 192.0.2.0/24 -j ACCEPT\n-A PREROUTING"),
  );
  await timed("verify, others' rules: all traffic", "verify", "-f", objects, "--rules", damaged, ...NODE);
} finally {
  rmSync(folder, { recursive: true });
}

function workload(): RawObject[] {
  return Array.from({ length: services }, (_, at) => {
    const name = `service-${at}`;
    const clusterIP = `10.96.${(at >> 8) + 1}.${at & 255}`;
    const addresses = Array.from({ length: endpoints }, (_, index) => ({
      address: `10.${144 + (at >> 12)}.${(at >> 4) & 255}.${(((at & 15) * 10 + index) % 250) + 1}`,
    }));
    const ports = [{ port: 8080 }];
    return [
      service(name, { clusterIPs: [clusterIP], ports: [{ port: 80, targetPort: 8080 }] }),
      endpointSlice(`${name}-1`, { service: name, family: "IPv4", ports, endpoints: addresses }),
    ];
  }).flat();
}

/** What iptables-save would print of a kernel that got the payload. */
function saved(payload: string): string {
  return [...toEnd(restored([payload], "IPv4")).values()]
    .map(({ table, chains }) => {
      const all = [...chains.values()];
      const declared = all.map(({ name, policy = "-" }) => `:${name} ${policy} [0:0]\n`);
      const rules = all.map(({ name, texts }) => texts.map((text) => `-A ${name} ${text}\n`).join(""));
      return `*${table}\n${declared.join("")}${rules.join("")}COMMIT\n`;
    })
    .join("");
}

async function fairlead(...args: readonly string[]): Promise<string> {
  const argv = [process.execPath, program, ...args] as const;
  return (await createRunner().run(argv, { maxStdout: 1 << 30, timeoutMs: 300_000 })).stdout;
}

async function timed(what: string, ...args: readonly string[]): Promise<void> {
  const start = performance.now();
  const answer = await fairlead(...args).catch(failed);
  const took = performance.now() - start;
  console.log(`${what}: ${took.toFixed(0)} ms, ${answer.split("\n", 1)[0]}`);
}

/** Exit code 1: something was found. */
function failed(error: unknown): string {
  if (error instanceof CommandError && error.exitCode === 1) return "exit 1";
  throw error;
}
