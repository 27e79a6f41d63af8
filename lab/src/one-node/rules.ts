import type { IPFamily } from "@fairlead/core";
import type { Variant } from "@fairlead/kernel";
import { PLAIN_TOOL } from "../support/plain-tool.ts";
import type { Lab } from "../two-nodes/lab.ts";

/**
 * node-a's chains and rules of both families without counters, `IPv4 nat -A KUBE-SERVICES …`, sorted: chains have no
 * order, that of dispatch rules and of jumps alongside those of others means nothing, and for the rest packets are the
 * test.
 */
export async function rulesOf(lab: Lab, variant: Variant = "nft"): Promise<readonly string[]> {
  const families: readonly IPFamily[] = ["IPv4", "IPv6"];
  const saved = await Promise.all(families.map((family) => savedRules(lab, family, variant)));
  return saved.flat().sort();
}

async function savedRules(lab: Lab, family: IPFamily, variant: Variant): Promise<readonly string[]> {
  const { stdout } = await lab.runner("node-a").run([`${PLAIN_TOOL[family]}-${variant}-save`]);
  return stdout.split("\n*").flatMap((section) => {
    const [head = "", ...lines] = section.split("\n");
    const table = head.trim();
    const rules = lines.filter((line) => line.startsWith(":") || line.startsWith("-A "));
    return rules.map((line) => `${family} ${table} ${line.replace(/ \[\d+:\d+\]$/, "")}`);
  });
}
