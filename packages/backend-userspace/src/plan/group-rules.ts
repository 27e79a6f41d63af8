import type { Frontend, ServicePortGroup } from "@fairlead/core";
import { comment, type Rule } from "@fairlead/netfilter";
import type { ChainRule } from "./chains.ts";
import type { RelayPorts, RenderContext } from "./context.ts";
import { EXTERNAL_SERVICES, NODEPORT_NON_LOCAL, PROXY_FIREWALL, SERVICES } from "./names.ts";
import { redirectRules } from "./redirect-rules.ts";
import { proxied, refusal, relayedSets } from "./relays.ts";
import { fromExcluded, reject, toFrontend, toPort } from "./rule-parts.ts";

/** Everything that a group has in the chains of this mode, in order. */
export function groupRules(group: ServicePortGroup, ports: RelayPorts, context: RenderContext): readonly ChainRule[] {
  const rules: ChainRule[] = [];
  for (const frontend of group.frontends) {
    rules.push(...redirectRules(group, frontend, ports, context));
    rules.push(...refusalRules(group, frontend, ports, context));
  }
  return [...rules, ...entryRules(group, ports), ...healthCheckRules(group)];
}

/** Filter asks after nat: what still has the frontend's address there was sent to no relay. */
function refusalRules(
  group: ServicePortGroup,
  frontend: Frontend,
  ports: RelayPorts,
  { family }: RenderContext,
): readonly ChainRule[] {
  const verdict = refusal(frontend, (set) => ports(group, set) !== undefined);
  const rules: ChainRule[] = [];
  if (frontend.gate !== undefined && proxied(frontend.treatments.outside)) {
    const rule = toFrontend(group.protocol, frontend, `${group.name} traffic not accepted by source ranges`);
    rules.push({ table: "filter", chain: PROXY_FIREWALL, rule: { ...rule, target: { kind: "drop" } } });
  }
  if (verdict === undefined) return rules;
  const chain = REFUSAL_CHAINS[frontend.reach];
  const rule = toFrontend(
    group.protocol,
    frontend,
    `${group.name} has no ${verdict === "drop" ? "local " : ""}endpoints`,
  );
  const matches = frontend.address === undefined ? [...rule.matches, LOCAL_DESTINATION] : rule.matches;
  const target = verdict === "drop" ? ({ kind: "drop" } as const) : reject(family);
  const refused = { table: "filter", chain, rule: { ...rule, matches, target } } as const;
  if (frontend.address === undefined) return [...rules, refused];
  // Each goes to the top, so that the last one stands first.
  const excluded = fromExcluded(group.protocol, frontend, group.name);
  return [...rules, ...[refused, ...excluded.map((each) => ({ ...refused, rule: each }))].map(onTop)];
}

const REFUSAL_CHAINS = {
  internal: SERVICES,
  external: EXTERNAL_SERVICES,
} as const satisfies Record<Frontend["reach"], string>;

function onTop(rule: ChainRule): ChainRule {
  return { ...rule, first: true };
}

const LOCAL_DESTINATION = { kind: "addrtype", dstType: { value: "LOCAL" } } as const;

/**
 * A relay takes what rules of nat have sent there and nothing else: a client of its port itself would get around
 * source ranges and policies. What is for clients from outside gets in whatever INPUT's policy is, as in iptables mode.
 */
function entryRules(group: ServicePortGroup, ports: RelayPorts): readonly ChainRule[] {
  return relayedSets(group).flatMap((set) => {
    const port = ports(group, set);
    if (port === undefined) return [];
    const rule = toPort(group.protocol, port, group.name);
    const guard: Rule = {
      ...rule,
      matches: [...rule.matches, { kind: "conntrack", negated: true, states: ["DNAT"] }],
      target: { kind: "drop" },
    };
    const accept: Rule = {
      ...rule,
      matches: [...rule.matches, { kind: "conntrack", module: "state", states: ["NEW"] }],
      target: { kind: "accept" },
    };
    const rules = group.frontends.some(({ reach }) => reach === "external") ? [guard, accept] : [guard];
    return rules.map((each): ChainRule => ({ table: "filter", chain: NODEPORT_NON_LOCAL, rule: each }));
  });
}

/** The load balancer's health checks come from outside and must get in whatever INPUT's policy is. */
function healthCheckRules({ healthCheckPort, name }: ServicePortGroup): readonly ChainRule[] {
  if (healthCheckPort === undefined) return [];
  const { protocol, matches } = toPort("TCP", healthCheckPort, "");
  const remark = comment(`${name} health check node port`);
  const rule: Rule = {
    ...(protocol && { protocol }),
    matches: [remark, ...matches.slice(1)],
    target: { kind: "accept" },
  };
  return [{ table: "filter", chain: NODEPORT_NON_LOCAL, rule }];
}
