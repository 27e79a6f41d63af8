import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

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
 * A shell, since it outlives this process: an installation that has begun goes on to its end, also when this process is
 * killed, and what was only for it goes away with it. Its output goes to a file for the same reason.
 */
const SCRIPT = `
policy=$1 units=$2
shift 2
log=$(mktemp)
trap 'exit 130' INT TERM
trap '' HUP
trap 'rm -f "$log"; [ -z "$policy" ] || rm -f "$policy"; [ -z "$units" ] || systemctl disable --quiet $units 2>/dev/null' EXIT
[ -z "$policy" ] || { printf '#!/bin/sh\\nexit 101\\n' >"$policy" && chmod 755 "$policy"; }
"$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }`;

/**
 * Installs without starting a service, now or at the next boot. What runs already, or was there before, is not touched: only
 * units of packages that were missing are disabled. A machine that has a policy of its own keeps it.
 *
 * @param {readonly string[]} packages that were missing
 * @param {readonly string[]} command that installs them
 * @param {NodeJS.ProcessEnv} env of the command
 * @param {string} policy only tests name another file
 * @returns {boolean} whether it did
 */
export function installIdle(packages, command, env, policy = POLICY) {
  const quiet = packages.some((name) => name in units) && !existsSync(policy);
  const added = packages.flatMap((name) => units[name] ?? []);
  const argv = ["-c", SCRIPT, "sh", quiet ? policy : "", added.join(" "), ...command];
  return spawnSync("sh", argv, { stdio: ["ignore", "inherit", "inherit"], env }).status === 0;
}
