/** What one group of Services comes to: chains, elements, pools. */

import { type Frontend, refusesShare, type ServicePortGroup, type Treatment } from "@fairlead/core";
import {
  addressHex,
  type Expression,
  type Hex,
  type NftRule,
  type SetElement,
  statements,
  type Verdict,
} from "@fairlead/netfilter/nft";
import { commentText, LOOPBACK_REFUSALS, loopbackRefusalChain, type PlanContext, RESET_OR_DROP } from "./context.ts";
import { isOffloaded, type Offloaded, offloadedFrontend } from "./fast-path.ts";
import { FIREWALL_CHAINS, FIREWALL_MAPS, firewallNeed, nodePortFirewallNeed } from "./frame-sets.ts";
import { addressKey, hairpinKey, nodePortKey, numberValue } from "./keys.ts";
import { fromNode, fromPods, markForMasquerading } from "./masquerade.ts";
import type { Placement } from "./placement.ts";
import { externalNeed, keyTypes, type Need, POOL_KINDS, type PoolKind, type PoolUse, type Structure } from "./pools.ts";
import { frontendsMap, poolChain } from "./sticky.ts";

/** An element that leads packets on, or turns them away. */
export interface Entry {
  readonly set: string;
  readonly element: SetElement & { readonly value: Verdict };
}

/** An element that says which service port a frontend is of. */
interface FrontendNumber {
  readonly set: string;
  readonly element: SetElement & { readonly value: Hex };
}

/** What a group is in the table, its source ranges' chain aside. */
export interface GroupParts {
  readonly entries: ReadonlyMap<string, Entry>;
  /** By map of the kind and key. */
  readonly uses: ReadonlyMap<string, PoolUse>;
  /** By set and key; of a group with affinity. */
  readonly numbers: ReadonlyMap<string, FrontendNumber>;
  /** By set and key; frontends whose connections bypass rules. */
  readonly offloaded: ReadonlyMap<string, Offloaded>;
  readonly shared: readonly SharedElement[];
  readonly needs: readonly Need[];
}

type ElementContext = Pick<
  PlanContext,
  "resetStaleTCP" | "refusedOnLoopback" | "masqueradeAll" | "fastPath" | "nodePortAddresses"
>;

const PLAIN: ElementContext = {
  resetStaleTCP: false,
  refusedOnLoopback: [],
  masqueradeAll: false,
  fastPath: false,
  nodePortAddresses: "all",
};

const NOTHING: GroupParts = {
  entries: new Map(),
  uses: new Map(),
  numbers: new Map(),
  offloaded: new Map(),
  shared: [],
  needs: [],
};

/** @param context absent: which elements lead to the endpoints does not matter */
export function groupParts(placement: Placement | undefined, context: ElementContext = PLAIN): GroupParts {
  return placement === undefined ? NOTHING : new Collector(placement, context).collect();
}

export interface SharedElement {
  readonly set: "cluster-ips" | "hairpin-connections";
  readonly key: Hex;
}

/** What external frontends of policy Local have in common. */
interface LocalDispatch {
  readonly chain: string;
  /** Where this node's pods, and the node itself, are led: to the cluster's endpoints. */
  readonly shortCuts: string;
  /** Where all others are led: to endpoints on this node. */
  readonly services: string;
}

const LOCAL_DISPATCH = {
  address: { chain: "external-local", shortCuts: "local-short-cuts", services: "local-services" },
  nodePort: {
    chain: "external-nodeport-local",
    shortCuts: "nodeport-local-short-cuts",
    services: "nodeport-local-services",
  },
} as const satisfies Record<string, LocalDispatch>;

class Collector {
  readonly #entries = new Map<string, Entry>();
  readonly #uses = new Map<string, PoolUse>();
  readonly #numbers = new Map<string, FrontendNumber>();
  readonly #offloaded = new Map<string, Offloaded>();
  readonly #needs: Need[] = [];
  readonly #placement: Placement;
  readonly #comment: string;
  readonly #refusals: Refusals;
  readonly #refusedOnLoopback: boolean;
  readonly #masqueradeAll: boolean;
  readonly #context: ElementContext;

  constructor(placement: Placement, context: ElementContext) {
    const { resetStaleTCP, refusedOnLoopback, masqueradeAll } = context;
    const { protocol } = placement.group;
    this.#context = context;
    this.#placement = placement;
    this.#refusals = resetStaleTCP && protocol === "TCP" ? RESETTING : REFUSALS;
    this.#refusedOnLoopback = refusedOnLoopback.includes(protocol);
    this.#masqueradeAll = masqueradeAll;
    this.#comment = commentText(placement.group.name);
  }

  collect(): GroupParts {
    const { group } = this.#placement;
    const ours = group.frontends.filter(({ treatments }) => treatments.outside.verdict !== "leave");
    for (const frontend of ours) this.#frontend(frontend);
    const [entries, uses, numbers, needs] = [this.#entries, this.#uses, this.#numbers, this.#needs];
    return { entries, uses, numbers, offloaded: this.#offloaded, shared: sharedElements(group, ours), needs };
  }

  #frontend(frontend: Frontend): void {
    const { group } = this.#placement;
    const { name, protocol } = group;
    const { at, address, port, treatments } = frontend;
    const key = address === undefined ? nodePortKey(protocol, port) : addressKey(address, protocol, port);
    const family = MAPS_OF[at];
    const sets = SETS[family];
    // What draws no endpoint comes to the chains that refuse as it was sent.
    const { verdict } = treatments.outside;
    const refused = this.#refusals[verdict === "proxy" && refusesShare(group, frontend) ? "reject" : verdict];
    if (refused !== undefined) this.#entry(sets.noEndpoints, key, refused);
    if (frontend.gate !== undefined) {
      const chain = FIREWALL_CHAINS[frontend.kind](name, protocol);
      this.#entry(FIREWALL_MAPS[at], key, { kind: "goto", chain }, false);
      if (at === "node-port") this.#needs.push(nodePortFirewallNeed);
      else if (this.#context.fastPath) this.#needs.push(firewallNeed);
    }
    if (this.#refusedOnLoopback && at === "node-port") {
      this.#entry(LOOPBACK_REFUSALS, key, { kind: "goto", chain: loopbackRefusalChain(protocol) });
    }
    const chain = this.#dispatch(frontend, key, family);
    if (chain === undefined) return;
    this.#entry(sets.services, key, { kind: "goto", chain });
    if (this.#context.fastPath) this.#offload(frontend);
  }

  #offload(frontend: Frontend): void {
    const { group } = this.#placement;
    if (!isOffloaded(group)) return;
    const offloaded = offloadedFrontend(group, frontend, this.#context);
    if (offloaded !== undefined) this.#offloaded.set(`${offloaded.set} ${offloaded.element.key}`, offloaded);
  }

  /** @returns the chain that the frontend's packets go to */
  #dispatch({ reach, treatments }: Frontend, key: Hex, family: keyof typeof POOL_KINDS): string | undefined {
    switch (reach) {
      case "internal":
        // The set "cluster-ips" knows which clients have to be masqueraded, where pods need not be.
        return !this.#masqueradeAll && masquerades(treatments.pod)
          ? this.#external(treatments.outside, key, family, "cluster")
          : this.#pool(treatments.outside, key, POOL_KINDS[family], "cluster");
      case "external":
        return sameForAll(treatments)
          ? this.#external(treatments.outside, key, family)
          : this.#local(treatments, key, family);
      default:
        return reach satisfies never;
    }
  }

  #external(treatment: Treatment, key: Hex, family: keyof typeof POOL_KINDS, as?: "cluster"): string | undefined {
    const chain = this.#pool(treatment, key, POOL_KINDS[family], as);
    if (chain === undefined || !masquerades(treatment)) return chain;
    const need = externalNeed(chain);
    this.#needs.push(need);
    return need.id;
  }

  #local(treatments: Frontend["treatments"], key: Hex, family: keyof typeof POOL_KINDS): string | undefined {
    const dispatch: LocalDispatch = LOCAL_DISPATCH[family];
    const kinds = POOL_KINDS[family];
    const shortCut = [treatments.pod, treatments.node].find(
      (each) => each.verdict === "proxy" && each.set === "cluster",
    );
    // The chain itself masquerades the node, but no pods.
    const marked = masquerades(treatments.pod);
    const chains = {
      [dispatch.shortCuts]:
        shortCut && (marked ? this.#external(shortCut, key, family) : this.#pool(shortCut, key, kinds)),
      [dispatch.services]: this.#pool(treatments.outside, key, kinds),
    };
    const led = Object.entries(chains).filter(([, chain]) => chain !== undefined);
    for (const [set, chain = ""] of led) this.#entry(set, key, { kind: "goto", chain });
    if (led.length === 0) return undefined;
    this.#needs.push(localNeed(dispatch, kinds.cluster));
    return dispatch.chain;
  }

  /**
   * @param as whose maps the endpoints stand in; default: those of the set that they are
   * @returns the chain that leads to the endpoints; undefined: there is none
   */
  #pool(
    treatment: Treatment,
    key: Hex,
    kinds: Readonly<Record<"cluster" | "local", PoolKind>>,
    as?: "cluster",
  ): string | undefined {
    if (treatment.verdict !== "proxy") return undefined;
    const pool = this.#placement[treatment.set];
    if (pool === undefined) return undefined;
    const { memory, group } = this.#placement;
    // What is remembered of a service port is asked for in the set that the endpoints are of.
    const kind = kinds[memory === undefined ? (as ?? treatment.set) : treatment.set];
    this.#uses.set(`${kind.prefix}${key}`, { kind, key, pool });
    const { chain, needs } = poolChain(kind, treatment.set, pool, group);
    this.#needs.push(...needs);
    if (memory !== undefined) this.#number(frontendsMap(kind), key, memory.number);
    return chain;
  }

  #number(set: string, key: Hex, number: number): void {
    const element = { key, value: numberValue(number), comment: commentText(this.#placement.group.service) };
    this.#numbers.set(`${set} ${key}`, { set, element });
  }

  #entry(set: string, key: Hex, value: Verdict, commented = true): void {
    const element = { key, value, ...(commented && { comment: this.#comment }) };
    this.#entries.set(`${set} ${key}`, { set, element });
  }
}

/** Under which keys a frontend stands in maps. */
const MAPS_OF = {
  address: "address",
  "node-port": "nodePort",
} as const satisfies Record<Frontend["at"], keyof typeof POOL_KINDS>;

/** Sets and maps by how a frontend is known. */
const SETS = {
  address: { services: "service-ips", noEndpoints: "no-endpoint-services" },
  nodePort: { services: "service-nodeports", noEndpoints: "no-endpoint-nodeports" },
} as const;

type Refusals = Readonly<Partial<Record<Treatment["verdict"], Verdict>>>;

const REFUSALS: Refusals = {
  reject: { kind: "goto", chain: "reject-chain" },
  drop: { kind: "drop" },
};

/** What is in the middle of a TCP connection is reset there. */
const RESETTING: Refusals = { ...REFUSALS, drop: { kind: "goto", chain: RESET_OR_DROP } };

function localNeed(dispatch: LocalDispatch, kind: PoolKind): Need {
  return { id: dispatch.chain, make: (context) => localStructure(dispatch, kind, context) };
}

function localStructure(
  { chain, shortCuts, services }: LocalDispatch,
  kind: PoolKind,
  context: PlanContext,
): Structure {
  const { family } = context;
  const by = (map: string) => statements.lookUp(family, kind.fields, map, "verdict");
  const rule = (expressions: readonly Expression[], comment?: string): NftRule => ({
    expressions,
    ...(comment !== undefined && { comment }),
  });
  const key = keyTypes(kind, family);
  const maps = [shortCuts, services].map((name) => ({
    name,
    key,
    data: "verdict" as const,
    flags: [],
  }));
  const rules = [
    ...fromPods(context).map((sender) => rule([...sender, ...by(shortCuts)], "short-circuit pod traffic")),
    // A frontend's own address may be the node's source.
    rule([...fromNode, ...markForMasquerading(context)], "masquerade local traffic"),
    rule([...fromNode, ...by(shortCuts)], "short-circuit local traffic"),
    rule(by(services)),
  ];
  return { sets: maps, chains: [{ name: chain, rules }] };
}

/** @param frontends of the group, those that this proxy serves */
function sharedElements(
  { cluster, local, protocol }: ServicePortGroup,
  frontends: readonly Frontend[],
): SharedElement[] {
  const shared = new Map<string, SharedElement>();
  const add = (set: SharedElement["set"], key: Hex) => shared.set(`${set} ${key}`, { set, key });
  for (const { reach, address } of frontends) {
    if (reach === "internal" && address !== undefined) add("cluster-ips", addressHex(address));
  }
  for (const endpoints of [cluster, local]) {
    for (const endpoint of endpoints) {
      if (endpoint.local) add("hairpin-connections", hairpinKey(endpoint, protocol));
    }
  }
  return [...shared.values()];
}

/** Whether every sender is treated as those outside are. */
function sameForAll({ pod, node, outside }: Frontend["treatments"]): boolean {
  return alike(pod, outside) && alike(node, outside);
}

function masquerades(treatment: Treatment): boolean {
  return treatment.verdict === "proxy" && treatment.masquerade;
}

function alike(a: Treatment, b: Treatment): boolean {
  if (a === b) return true;
  if (a.verdict !== "proxy" || b.verdict !== "proxy") return a.verdict === b.verdict;
  return a.set === b.set && a.masquerade === b.masquerade;
}
