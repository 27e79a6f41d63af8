import type { Frontend, ServicePortGroup } from "@fairlead/core";
import { detectsPods, jump, notFromPods, type Rule } from "@fairlead/netfilter";
import { OFF_CLUSTER } from "./group-names.ts";
import { MARK_MASQ } from "./names.ts";
import { proxied } from "./reach.ts";
import { toAddress } from "./rule-parts.ts";
import type { RenderContext } from "./settings.ts";

/**
 * Marks packets to the cluster IP whose answer would not find its way back through this node: all of them, or those
 * that are not of its pods.
 */
export function* masqueradeRules(group: ServicePortGroup, frontend: Frontend, context: RenderContext): Generator<Rule> {
  const { pod, node, outside } = frontend.treatments;
  if (!masquerades(outside) && !masquerades(node)) return;
  const packets = toAddress(frontend.address ?? "", group.protocol, frontend.port, `${group.name} cluster IP`);
  if (masquerades(pod)) {
    yield { ...packets, target: jump(MARK_MASQ) };
    return;
  }
  if (!detectsPods(context.node.detector)) return;
  const origin = notFromPods(context.node.detector);
  yield origin === undefined
    ? { ...packets, target: jump(OFF_CLUSTER) }
    : { ...origin, ...packets, target: jump(MARK_MASQ) };
}

function masquerades(treatment: Frontend["treatments"]["pod"]): boolean {
  return proxied(treatment) && treatment.masquerade;
}
