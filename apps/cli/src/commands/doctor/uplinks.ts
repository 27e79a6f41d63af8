import type { AgentConfig } from "@fairlead/config";
import type { NodeFacts, NodeState } from "@fairlead/inspect";
import { type Attempt, outputOf } from "./command-result.ts";

/**
 * The interfaces whose clients `replyVia` answers by them, but for the one by which the node would answer anyway, with
 * the kernel's filter of what comes in by them. Undefined: it is not set.
 */
export async function uplinkFacts(
  { replyVia }: Pick<AgentConfig, "replyVia">,
  { routes = [] }: NodeState,
  attempt: Attempt,
): Promise<NodeFacts["uplinks"]> {
  if (replyVia === undefined) return undefined;
  const defaults = routes.filter(({ cidr }) => cidr === "0.0.0.0/0");
  const inOrder = defaults.toSorted((a, b) => (a.metric ?? 0) - (b.metric ?? 0));
  const found = inOrder.flatMap(({ devices }) => devices.slice(0, 1));
  const wanted = replyVia.uplinks === "auto" ? found : replyVia.uplinks.map((uplink) => uplink.interface);
  const names = [...new Set(wanted)].filter((name) => name !== found[0]);
  const all = await filterOf("all", attempt);
  return Promise.all(
    names.map(async (name) => {
      const own = await filterOf(name, attempt);
      // The larger one counts (ip-sysctl, rp_filter).
      return { interface: name, filter: own === undefined || all === undefined ? undefined : Math.max(own, all) };
    }),
  );
}

async function filterOf(name: string, attempt: Attempt): Promise<number | undefined> {
  const text = outputOf(await attempt("cat", `/proc/sys/net/ipv4/conf/${name}/rp_filter`));
  return text === undefined ? undefined : Number(text);
}
