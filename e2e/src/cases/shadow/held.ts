import { fileURLToPath } from "node:url";
import type { Argv, Runner } from "@fairlead/kernel";

const SCRIPT = fileURLToPath(new URL("generation-main.ts", import.meta.url));

const LEGACY: readonly Argv[] = [["iptables-legacy-save"], ["ip6tables-legacy-save"]];

/**
 * All rules of iptables and nf_tables without their counters, with handles, and the number of the last transaction: the
 * same twice means that nobody wrote in between.
 */
export function heldBy(runner: Runner): Promise<readonly string[]> {
  const generation: Argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", SCRIPT];
  return listed(runner, [...LEGACY, ["nft", "-a", "list", "ruleset"], generation]);
}

/** Virtual servers, sets, addresses and rules of ipvs mode, of whose changes no number tells. */
export function heldInIpvs(runner: Runner): Promise<readonly string[]> {
  return listed(runner, [
    ...LEGACY,
    ["ipvsadm", "--save", "-n"],
    ["ipset", "save"],
    ["ip", "-oneline", "address", "show"],
  ]);
}

async function listed(runner: Runner, listings: readonly Argv[]): Promise<readonly string[]> {
  const texts = await Promise.all(listings.map((argv) => runner.run(argv)));
  return texts.map(({ stdout }) => stdout.replace(/counter packets \d+ bytes \d+|\[\d+:\d+\]|^#.*$/gm, ""));
}
