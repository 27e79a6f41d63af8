import { familyOf, isLoopback } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { compareTraffic, isProxyChain, type TrafficDifference } from "@fairlead/inspect";
import { compareRuleSets, type RuleSetDifference } from "@fairlead/netfilter";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { demandServices } from "../../inputs/namespaces.ts";
import { print } from "../../output/output.ts";
import type { diffOptions } from "./options.ts";
import { NODE, readSide, type Side } from "./sides.ts";
import { differentTables } from "./tables.ts";
import { diffText, fateData } from "./text.ts";

export async function run(
  { arguments: [a = "", b = ""], options }: CommandInput<typeof diffOptions>,
  context: Context,
): Promise<ExitCode> {
  const family: IPFamily = options.family === "ipv4" ? "IPv4" : "IPv6";
  // The node whose kernel is compared is the one that is planned.
  const values = {
    ...options,
    node: options.node ?? options.on,
    here: options.on === undefined && [a, b].includes(NODE),
  };
  const live = [a, b].includes(NODE) ? await readSide(NODE, family, values, context) : undefined;
  const side = async (argument: string, mode?: (typeof options)["to-mode"]) =>
    argument === NODE && live !== undefined
      ? live
      : readSide(argument, family, values, context, { mode, kernel: live?.state });
  const before = await side(a);
  const after = await side(b, options["to-mode"]);
  demandServices(
    options.namespace,
    [before, after].flatMap(({ of }) => of ?? []),
  );
  const traffic = await context.progress("tracing packets through both", async () => {
    const planned = before.planned === after.planned ? undefined : before.planned ? "before" : "after";
    return compareTraffic(before.state, after.state, family, nodeAddress(family, before, after), planned);
  });
  const rules = options["traffic-only"] ? [] : differentRules(before, after);
  const tables = options["traffic-only"] ? [] : differentTables(before, after);
  const data = { family, traffic: trafficData(traffic), rules, tables };
  await print(options.output, data, () => diffText(traffic, { rules, tables }, context.style), context);
  return traffic.changes.length + rules.length + tables.length > 0 ? 1 : 0;
}

/** kube-proxy notices by it that rules were flushed. */
const CANARY = "KUBE-PROXY-CANARY";

/** The node's address of that family, as far as one of the two knows it. */
function nodeAddress(family: IPFamily, ...sides: readonly Side[]): string | undefined {
  for (const { state } of sides) {
    for (const address of state.environment.localAddresses ?? []) {
      if (familyOf(address) !== family || isLoopback(address) || address.startsWith("fe80:")) continue;
      return address;
    }
  }
  return undefined;
}

/** A plan says nothing of other programs' chains, nor of what kubelet and kube-proxy only look after. */
function differentRules(before: Side, after: Side): readonly RuleSetDifference[] {
  const plans = before.planned || after.planned;
  const chains = (_table: string, chain: string) => !plans || (isProxyChain(chain) && chain !== CANARY);
  return compareRuleSets(before.state.ruleSet, after.state.ruleSet, { chains });
}

function trafficData({ compared, changes, masqueraded }: TrafficDifference) {
  return {
    compared,
    masqueraded,
    changes: changes.map(({ destination, from, before, after }) => {
      return { destination, from, before: fateData(before), after: fateData(after) };
    }),
  };
}
