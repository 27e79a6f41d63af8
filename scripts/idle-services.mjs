import { spawnSync } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";

/** Debian's packages ask this program whether they may start a service; 101: they may not. */
const POLICY = "/usr/sbin/policy-rc.d";

/** What the packages would start now, and at every boot from now on; the specs start their own in namespaces. */
const units = {
  bird2: ["bird"],
  "openvswitch-switch": ["openvswitch-switch"],
  "ovn-central": ["ovn-central"],
  "ovn-host": ["ovn-host"],
};

/**
 * Installs without starting a service, now or at the next boot. What runs already, or was there before, is not touched: only
 * units of packages that were missing are disabled. A machine that has a policy of its own keeps it.
 *
 * @param {readonly string[]} packages that were missing
 * @param {() => boolean} install
 * @returns {boolean} what `install` says
 */
export function installIdle(packages, install) {
  const quiet = packages.some((name) => name in units) && !existsSync(POLICY);
  if (quiet) writeFileSync(POLICY, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    return install();
  } finally {
    if (quiet) rmSync(POLICY);
    const added = packages.flatMap((name) => units[name] ?? []);
    if (added.length > 0) spawnSync("systemctl", ["disable", "--quiet", ...added], { stdio: "ignore" });
  }
}
