// `pnpm e2e`: one run of the test ground as its own command line says, and `pnpm e2e --all`: everything that takes too
// long for `npm test`, one run after the other. Plain JavaScript without dependencies, as the other scripts.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ended, root, runAlongside, runStep, sayStep, start, tool } from "./steps.mjs";
import { countsOf, summarize } from "./summary.mjs";

/** How many times as long as in `npm test` properties run (tooling/runs.ts), and what sends packets. */
const LONG_RUNS = "50";
const LONG_PACKETS = "20";

const ground = (...args) => ({ args: ["--provider", "netns", ...args] });
const tests = (env, ...args) => ({ vitest: args, env });

/** Of kube-proxy, which is newer than the control plane of the other runs. */
const { kubeProxy: FOLLOWED } = JSON.parse(readFileSync(join(root, "versions.json"), "utf8"));

/** What each run is; nightly CI has a job for each. */
export const RUNS = {
  properties: tests({ FAIRLEAD_RUNS: LONG_RUNS }, "--project=pure", "--project=kernel", "packages/", "apps/"),
  tracer: tests({ FAIRLEAD_RUNS: LONG_PACKETS }, "--project=kernel", "e2e/"),
  uml: tests({ FAIRLEAD_UML: "all" }, "--project=uml"),
  cost: { args: ["--suite", "cost"] },
  windows: { args: ["--suite", "windows"] },
  "fast path": tests({ FAIRLEAD_RUNS: LONG_PACKETS }, "--project=qemu", "e2e/test/fast-path"),
  weights: tests({}, "--project=qemu", "e2e/test/weights"),
  "ipvs qemu": tests({}, "--project=qemu", "e2e/test/ipvs"),
  ...Object.fromEntries(
    ["bridge", "flannel", "flannel:host-gw", "calico", "ovn", "bridge,ptp", "flannel,calico,ovn"].map((cni) => [
      `iptables ${cni}`,
      ground("--cni", cni, "--mode", "iptables"),
    ]),
  ),
  "iptables newest": ground("--cni", "bridge,ptp", "--mode", "iptables", "--kubernetes", FOLLOWED),
  "nftables calico,ovn": ground("--cni", "calico,ovn", "--mode", "nftables"),
  "userspace bridge,ptp": ground("--cni", "bridge,ptp", "--mode", "userspace"),
  "ipvs flannel": ground("--cni", "flannel", "--mode", "ipvs"),
  "faults ipv4": ground("--cni", "bridge,ptp", "--ip-family", "ipv4", "--suite", "faults"),
  "faults ipv6": ground("--cni", "bridge,ptp", "--ip-family", "ipv6", "--suite", "faults"),
  "faults nftables": ground("--cni", "bridge,ptp", "--mode", "nftables", "--suite", "faults"),
  "first hour": ground("--nodes", "4", "--suite", "faults", "--spec", "first hour"),
  "first hour ipv4": ground("--nodes", "4", "--ip-family", "ipv4", "--suite", "faults", "--spec", "first hour"),
  swap: ground("--cni", "bridge,ptp", "--suite", "swap"),
  attacks: ground("--cni", "bridge,ptp", "--suite", "attacks"),
  networks: ground("--cni", "bridge,ptp", "--suite", "networks"),
  "networks calico,ovn": ground("--cni", "calico,ovn", "--suite", "networks"),
  "networks nftables": ground("--cni", "calico,ovn", "--mode", "nftables", "--suite", "networks"),
  "network policies": ground("--suite", "network-policies", "--mode", "iptables,nftables"),
  soak: ground("--cni", "bridge", "--suite", "soak", "--hours", "1"),
  kind: { args: ["--provider", "kind"] },
  "kind rollout": { args: ["--provider", "kind", "--suite", "rollout"] },
  "kind gateways": { args: ["--provider", "kind", "--mode", "iptables,nftables", "--suite", "load-balancer,gateway"] },
  "kind sig-network": { args: ["--provider", "kind", "--suite", "sig-network,sig-network-others"] },
};

const USAGE = `Usage: pnpm e2e --all [RUN…]
       pnpm e2e --all --list

Everything that takes too long for npm test, one run after the other: hours. RUN: only those. --list prints their names as
JSON. Runs: ${Object.keys(RUNS).join("; ")}`;

/**
 * Runs the test ground's own command.
 *
 * @returns its exit code
 */
async function groundCommand(args) {
  const [node] = tool("node");
  const argv = [node, "--conditions=@fairlead/source", "--no-warnings", "src/command/main.ts", ...args];
  return (await ended(start(argv, "inherit", { cwd: join(root, "e2e") }))) ?? 1;
}

async function all(names) {
  const unknown = names.find((name) => !Object.hasOwn(RUNS, name));
  if (unknown !== undefined) {
    console.error(`pnpm e2e --all ${JSON.stringify(unknown)}: not a run\n\n${USAGE}`);
    return 2;
  }
  const steps = { build: await runStep(tool("turbo", "run", "build", "--output-logs=errors-only")) };
  const counts = {};
  const reports = [];
  for (const name of names.length === 0 ? Object.keys(RUNS) : names) {
    sayStep(name);
    const { args, vitest, env } = RUNS[name];
    if (args !== undefined) steps[name] = (await groundCommand(args)) === 0;
    else {
      const report = `all-${name}`;
      const argv = tool("vitest", "run", ...vitest);
      steps[name] = (await runAlongside(name, argv, { ...env, FAIRLEAD_REPORT: report })) === 0;
      counts[name] = countsOf(report);
      reports.push(report);
    }
  }
  return summarize(steps, counts, { reports });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const args = process.argv.slice(2);
  const rest = args.filter((arg) => arg !== "--all");
  if (rest.length === args.length) process.exitCode = await groundCommand(args);
  else if (rest.includes("--list")) console.log(JSON.stringify(Object.keys(RUNS)));
  else process.exitCode = await all(rest);
}
