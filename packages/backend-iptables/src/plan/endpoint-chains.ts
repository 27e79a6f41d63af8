import { socketText } from "@fairlead/base";
import type { PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { comment, jump, type Match, type Rule } from "@fairlead/netfilter";
import type { ChainRules } from "./chain-rules.ts";
import type { ChainNames } from "./group-names.ts";
import { MARK_MASQ } from "./names.ts";
import { recent } from "./recent.ts";
import { host, protocolName } from "./rule-parts.ts";
import type { RenderContext } from "./settings.ts";

/** The KUBE-SEP chains of a group: one for each endpoint that one of its sets has. */
export function* endpointChains(
  group: ServicePortGroup,
  context: RenderContext,
  names: ChainNames,
): Generator<ChainRules> {
  const shared = partsOf(group, context);
  for (const endpoint of usedEndpoints(group)) {
    const chain = names.endpoint(endpoint);
    names.pagers.cluster.step();
    yield { chain, rules: [hairpin(endpoint, shared), translation(endpoint, shared, remember(group, chain, context))] };
  }
}

/** What the rules of all endpoints of a group have in common: there may be ten thousand of them. */
interface Parts {
  readonly remark: readonly Match[];
  readonly protocol: NonNullable<Rule["protocol"]>;
  /** The last match of a rule that translates, and all of them where it remembers no clients. */
  readonly port: Match;
  readonly matches: readonly Match[];
}

function partsOf(group: ServicePortGroup, context: RenderContext): Parts {
  const protocol = protocolName(group.protocol);
  const remark = context.large ? [] : [comment(group.name)];
  const port: Match = { kind: protocol };
  return { remark, protocol: { value: protocol }, port, matches: [...remark, port] };
}

/** Those that have a chain, in the order of the chains. */
function* usedEndpoints(group: ServicePortGroup): Generator<PlanEndpoint> {
  yield* group.cluster;
  if (group.local.length === 0) return;
  const seen = new Set(group.cluster);
  for (const endpoint of group.local) if (!seen.has(endpoint)) yield endpoint;
}

/** An endpoint that reaches itself through the service must see another source than its own, or it answers itself. */
function hairpin({ address }: PlanEndpoint, { remark }: Parts): Rule {
  return { source: host(address), matches: remark, target: TO_MARK_MASQ };
}

const TO_MARK_MASQ = jump(MARK_MASQ);

function translation({ address, port }: PlanEndpoint, parts: Parts, remember: Match | undefined): Rule {
  return {
    protocol: parts.protocol,
    matches: remember === undefined ? parts.matches : [...parts.remark, remember, parts.port],
    target: { kind: "dnat", to: socketText(address, port) },
  };
}

function remember(group: ServicePortGroup, chain: string, context: RenderContext): Match | undefined {
  return group.affinitySeconds === undefined ? undefined : { ...recent(chain, context.family), op: "set" };
}
