import { readFileSync } from "node:fs";
import { join } from "node:path";
import { agentFile } from "./build-agent.mjs";
import { ended, pnpm, root, runAlongside, start } from "./steps.mjs";

/** `pnpm e2e` ends with this where the machine lacks what the run needs, and says what. */
const CANNOT_RUN = 3;

/**
 * One cluster for each mode that this machine's own kernel does; ipvs mode has User-Mode Linux. Each has two pod networks
 * side by side: BIRD, Open vSwitch and OVN (system-packages.mjs installs those where it may), and two that need nothing
 * but `ip`. `pnpm e2e --all` has the others.
 */
const clusters = { iptables: "calico,ovn", nftables: "bridge,ptp" };

/**
 * Begins to build what specs need while other checks run; it takes minutes the first time on a machine. It has the
 * priority of these checks: the specs and a benchmark wait for it, and would be all that is left to do. What it could not
 * build, `specs` says.
 *
 * @returns a promise that it has ended
 */
export function prepareSpecs(packageManager) {
  return ended(start(pnpm(packageManager, ["run", "e2e", "binaries"]), "ignore"));
}

/**
 * Runs the specs on clusters of namespaces, all at once: specs mostly wait. The agent is the one that the build has
 * left. The first time on a machine they build Kubernetes' control plane from Go modules, which takes minutes. A cluster
 * that this machine cannot have is one skip.
 *
 * @returns counts as of a package's tests; specs that a cluster cannot carry are not among them
 */
export async function specs(packageManager) {
  const runs = Object.entries(clusters).map(([mode, cni]) =>
    run(packageManager, `${cni} ${mode}`, ["--cni", cni, "--mode", mode]),
  );
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const counts of await Promise.all(runs)) for (const kind of Object.keys(sum)) sum[kind] += counts[kind];
  return sum;
}

async function run(packageManager, name, args) {
  const results = join(root, "e2e", ".e2e", `${name.replaceAll(" ", "-")}.xml`);
  const options = ["--provider", "netns", ...args, "--junit", results];
  // What the build has left: nothing is built under agents that run.
  const env = { FAIRLEAD_AGENT: process.env.FAIRLEAD_AGENT || agentFile };
  const status = await runAlongside(name, pnpm(packageManager, ["run", "e2e", ...options]), env);
  if (status === CANNOT_RUN) return { passed: 0, failed: 0, skipped: 1 };
  const { passed, failed } = counted(results);
  // A run that broke off, or left something behind, must not pass for a green one.
  return { passed, failed: status === 0 || failed > 0 ? failed : 1, skipped: 0 };
}

/** What JUnit's file says of all suites; nothing passed where there is none. */
function counted(file) {
  try {
    const [, tests, failed, skipped] = /<testsuites .*tests="(\d+)" failures="(\d+)" skipped="(\d+)"/
      .exec(readFileSync(file, "utf8"))
      .map(Number);
    return { passed: tests - failed - skipped, failed };
  } catch {
    return { passed: 0, failed: 1 };
  }
}
