import { plainTool } from "../faults/rules.ts";
import type { Lab } from "../lab/lab.ts";

/** Second jumps to the chains that translate, with a comment that no proxy's own have. */
const JUMPS = [
  { from: "PREROUTING", to: "KUBE-SERVICES" },
  { from: "OUTPUT", to: "KUBE-SERVICES" },
  { from: "POSTROUTING", to: "KUBE-POSTROUTING" },
] as const;

const COMMENT = ["-m", "comment", "--comment", "until nftables serves"];

/**
 * Keeps node-a's nat rules in place over kube-proxy's start in nftables mode, which removes iptables' rules before it
 * has any of its own: chains that something still leads to cannot be removed, and nat's are removed together or not at
 * all.
 *
 * @returns lets them go again
 */
export async function holdRules(lab: Lab): Promise<() => Promise<void>> {
  const each = async (verb: "-A" | "-D") => {
    for (const tool of Object.values(plainTool)) {
      for (const { from, to } of JUMPS) {
        await lab.runner("node-a").run([tool, "-w", "-t", "nat", verb, from, ...COMMENT, "-j", to]);
      }
    }
  };
  await each("-A");
  return () => each("-D");
}
