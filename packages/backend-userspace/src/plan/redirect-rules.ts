import { socketText } from "@fairlead/base";
import type { Frontend, ServicePortGroup, Treatment } from "@fairlead/core";
import type { Rule, Target } from "@fairlead/netfilter";
import type { ChainRule } from "./chains.ts";
import type { RelayPorts, RenderContext } from "./context.ts";
import { NODEPORT_CONTAINER, NODEPORT_HOST, PORTALS_CONTAINER, PORTALS_HOST } from "./names.ts";
import { proxied } from "./relays.ts";
import { fromExcluded, toFrontend } from "./rule-parts.ts";
import { allowed, allowedPods, type Origin } from "./sources.ts";

/** The rules that lead a frontend's packets to relays, each source class to the relay of its set. */
export function* redirectRules(
  group: ServicePortGroup,
  frontend: Frontend,
  ports: RelayPorts,
  context: RenderContext,
): Generator<ChainRule> {
  const { pod, node, outside } = frontend.treatments;
  const packets = toFrontend(group.protocol, frontend, group.name);
  const rules = (chain: string, origins: readonly Origin[], target: Target | undefined) =>
    target === undefined ? [] : origins.map((origin): ChainRule => inNat(chain, { ...origin, ...packets, target }));
  const relay = (treatment: Treatment) => relayTarget(group, treatment, ports, context);
  const everybody = allowed(frontend.gate);
  const [container, host] = CHAINS[frontend.at];
  yield* fromExcluded(group.protocol, frontend, group.name).map((rule) => inNat(container, rule));
  if (!sameWay(pod, outside)) {
    const pods = allowedPods(context.node.detector, frontend.gate);
    yield* rules(container, pods, relay(pod) ?? { kind: "return" });
  }
  yield* rules(container, everybody, relay(outside));
  yield* rules(host, everybody, relay(node));
}

const CHAINS = {
  address: [PORTALS_CONTAINER, PORTALS_HOST],
  "node-port": [NODEPORT_CONTAINER, NODEPORT_HOST],
} as const satisfies Record<Frontend["at"], readonly [string, string]>;

function inNat(chain: string, rule: Rule): ChainRule {
  return { table: "nat", chain, rule };
}

function relayTarget(
  group: ServicePortGroup,
  treatment: Treatment,
  ports: RelayPorts,
  { host }: RenderContext,
): Target | undefined {
  const port = proxied(treatment) ? ports(group, treatment.set) : undefined;
  return port === undefined ? undefined : { kind: "dnat", to: socketText(host, port) };
}

/** Masquerading makes no difference here: endpoints see the node in any case. */
function sameWay(a: Treatment, b: Treatment): boolean {
  return a.verdict === b.verdict && (!proxied(a) || !proxied(b) || a.set === b.set);
}
