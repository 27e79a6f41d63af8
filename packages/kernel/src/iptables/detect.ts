import type { Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import type { Variant } from "./client.ts";

/** Chains that kubelet makes in mangle so that others see which variant the host uses (KEP-3178). */
const HINT = /^:(?:KUBE-IPTABLES-HINT|KUBE-KUBELET-CANARY) /;

/**
 * Which variant the host uses, decided as Kubernetes' iptables-wrappers do: kubelet's chains in mangle, else who has more
 * rules, else nft. A wrong guess would leave the host's rules and ours in two places that do not know of each other.
 */
export async function detectVariant(runner: Runner): Promise<Variant> {
  const nft = ["iptables-nft-save", "ip6tables-nft-save"];
  const legacy = ["iptables-legacy-save", "ip6tables-legacy-save"];
  if (await anyLine(runner, nft, HINT, ["-t", "mangle"])) return "nft";
  // `-t mangle` would make the kernel create the legacy table.
  if (await anyLine(runner, legacy, HINT)) return "legacy";
  return (await countRules(runner, legacy)) > (await countRules(runner, nft)) ? "legacy" : "nft";
}

async function anyLine(runner: Runner, tools: readonly string[], pattern: RegExp, args: readonly string[] = []) {
  for (const tool of tools) {
    for await (const line of quietLines(runner, tool, args)) if (pattern.test(line)) return true;
  }
  return false;
}

async function countRules(runner: Runner, tools: readonly string[]): Promise<number> {
  let count = 0;
  for (const tool of tools) {
    for await (const line of quietLines(runner, tool, [])) if (line.startsWith("-")) count += 1;
  }
  return count;
}

/** A tool that fails here (no such family, no such kernel API) has no rules. */
async function* quietLines(runner: Runner, tool: string, args: readonly string[]): AsyncGenerator<string, void, void> {
  try {
    yield* lines(runner.stream([tool, ...args]));
  } catch {
    return;
  }
}
