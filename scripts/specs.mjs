import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { agentFile, buildAgent } from "./build-agent.mjs";
import { pnpm, root, runBeside, sayStep } from "./steps.mjs";

/** `pnpm e2e` ends with this where the machine lacks what the run needs, and says what. */
const CANNOT_RUN = 3;

/**
 * Pod networks, side by side with a real control plane: two that need nothing but `ip`, and two with BIRD, Open vSwitch and
 * OVN (system-packages.mjs installs those where it may).
 */
const clusters = ["bridge,ptp", "calico,ovn"];

/** Those that this machine's own kernel does; ipvs mode has User-Mode Linux. */
const modes = ["iptables", "nftables"];

/**
 * Begins to build what specs need, with the least priority, while other checks run; it takes minutes the first time on a
 * machine. What it could not build, `specs` says.
 *
 * @returns a promise that it has ended
 */
export function prepareSpecs(packageManager) {
  const child = spawn("nice", ["-n", "19", ...pnpm(packageManager, ["run", "e2e", "binaries"])], {
    cwd: root,
    stdio: "ignore",
  });
  return new Promise((resolve) => child.once("error", resolve).once("exit", resolve));
}

/**
 * Runs the specs on clusters of namespaces, all clusters of a mode at once: specs mostly wait. The first time on a
 * machine it builds Kubernetes' control plane from Go modules, which takes minutes. A cluster that this machine cannot
 * have is one skip.
 *
 * @returns counts as of a package's tests; specs that a cluster cannot carry are not among them
 */
export async function specs(packageManager) {
  sayStep(`e2e: ${clusters.join("; ")}`);
  // Once, and not by each of them while others run it.
  if (!process.env.FAIRLEAD_AGENT) {
    if (!(await buildAgent(packageManager))) return { passed: 0, failed: 1, skipped: 0 };
    process.env.FAIRLEAD_AGENT = agentFile;
  }
  const sum = { passed: 0, failed: 0, skipped: 0 };
  const add = (counts) => {
    for (const kind of Object.keys(sum)) sum[kind] += counts[kind];
  };
  for (const mode of modes) {
    for (const counts of await Promise.all(clusters.map((cni) => specsOn(packageManager, cni, mode)))) add(counts);
  }
  // By itself: it starts agents again and again.
  add(await soak(packageManager));
  return sum;
}

function specsOn(packageManager, cni, mode) {
  return run(packageManager, `${cni} ${mode}`, ["--cni", cni, "--mode", mode]);
}

async function run(packageManager, name, args) {
  const results = join(root, "e2e", ".e2e", `${name.replaceAll(" ", "-")}.xml`);
  const options = ["--provider", "netns", ...args, "--junit", results];
  const status = await runBeside(name, pnpm(packageManager, ["run", "e2e", ...options]));
  if (status === CANNOT_RUN) return { passed: 0, failed: 0, skipped: 1 };
  const { passed, failed } = counted(results);
  // A run that broke off, or left something behind, must not pass for a green one.
  return { passed, failed: status === 0 || failed > 0 ? failed : 1, skipped: 0 };
}

/** A cluster is put through random steps under load, always the same ones: half a minute of what `--hours` does for longer. */
function soak(packageManager) {
  return run(packageManager, "soak", ["--cni", "bridge", "--suite", "soak", "--hours", "0.01", "--seed", "30"]);
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
