import type { ClusterNode } from "../../provider/cluster.ts";

const RESTORE = 'printf "%s" "$2" | "$1-restore" --noflush';

/**
 * Takes note of the chains and rules that others than the proxy have in nat and filter; those of pod networks are
 * written once, and nobody brings them back after a flush.
 *
 * @param tool `iptables` or `ip6tables`
 * @returns what writes them again, once the tables have been flushed
 */
export async function noteOthersRules(node: ClusterNode, tool: string): Promise<() => Promise<void>> {
  const saved = await Promise.all(["nat", "filter"].map((table) => node.run([`${tool}-save`, "-t", table])));
  const text = saved.map(({ stdout }) => stdout.split("\n").filter(isOthers).join("\n")).join("\n");
  return async () => {
    await node.run(["sh", "-c", RESTORE, "sh", tool, `${text}\n`]);
  };
}

function isOthers(line: string): boolean {
  return /^(\*|:|-A |COMMIT)/.test(line) && !line.includes("KUBE-");
}
