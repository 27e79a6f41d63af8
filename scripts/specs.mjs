import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { pnpm, root, runStatus, sayStep } from "./steps.mjs";

/** `pnpm e2e` ends with this where the machine lacks what the run needs, and says what. */
const CANNOT_RUN = 3;

/**
 * Pod networks, side by side with a real control plane: two that need nothing but `ip`, and two with BIRD, Open vSwitch and
 * OVN (system-packages.mjs installs those where it may).
 */
const clusters = ["bridge,ptp", "calico,ovn"];

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
 * Runs the specs on clusters of namespaces. The first time on a machine it builds Kubernetes' control plane from Go modules,
 * which takes minutes. A cluster that this machine cannot have is one skip.
 *
 * @returns counts as of a package's tests; specs that a cluster cannot carry are not among them
 */
export function specs(packageManager) {
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const cni of clusters) {
    const counts = specsOn(packageManager, cni);
    for (const kind of Object.keys(sum)) sum[kind] += counts[kind];
  }
  return sum;
}

function specsOn(packageManager, cni) {
  sayStep(`e2e: ${cni}`);
  const status = runStatus(
    pnpm(packageManager, ["run", "e2e", "--provider", "netns", "--cni", cni, "--mode", "iptables"]),
  );
  if (status === CANNOT_RUN) return { passed: 0, failed: 0, skipped: 1 };
  try {
    const { passed, failed } = JSON.parse(readFileSync(new URL("../e2e/.e2e/counts.json", import.meta.url), "utf8"));
    // A run that broke off, or left something behind, must not pass for a green one.
    return { passed, failed: status === 0 || failed > 0 ? failed : 1, skipped: 0 };
  } catch {
    return { passed: 0, failed: 1, skipped: 0 };
  }
}
