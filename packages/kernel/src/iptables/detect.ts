import type { Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import type { Variant } from "./variant.ts";

/** Chains that kubelet makes in mangle so that others see which variant the host uses (KEP-3178). */
const HINT = /^:(?:KUBE-IPTABLES-HINT|KUBE-KUBELET-CANARY) /;

/**
 * Which variant the host uses, decided as Kubernetes' iptables-wrappers do: kubelet's chains in mangle, else who has
 * more rules, else nft. A wrong guess would leave the host's rules and ours in two places that do not know of each
 * other.
 */
export async function detectVariant(runner: Runner): Promise<Variant> {
  if ((await savedTables(runner, ["iptables-nft-save", "ip6tables-nft-save"], ["-t", "mangle"])).hint) return "nft";
  // `-t mangle` would make the kernel create the legacy table.
  const legacy = await savedTables(runner, ["iptables-legacy-save", "ip6tables-legacy-save"]);
  if (legacy.hint) return "legacy";
  // Nobody has fewer than none.
  if (legacy.rules === 0) return "nft";
  const nft = await savedTables(runner, ["iptables-nft-save", "ip6tables-nft-save"]);
  return legacy.rules > nft.rules ? "legacy" : "nft";
}

/** What the tools print: whether one of kubelet's chains is there, which is answer enough, and how many rules. */
async function savedTables(runner: Runner, tools: readonly string[], args: readonly string[] = []) {
  let rules = 0;
  for (const tool of tools) {
    for await (const line of quietLines(runner, tool, args)) {
      if (HINT.test(line)) return { hint: true, rules };
      if (line.startsWith("-")) rules += 1;
    }
  }
  return { hint: false, rules };
}

/** A tool that fails here (no such family, no such kernel API) has no rules. */
async function* quietLines(runner: Runner, tool: string, args: readonly string[]): AsyncGenerator<string, void, void> {
  try {
    yield* lines(runner.stream([tool, ...args]));
  } catch {
    return;
  }
}
