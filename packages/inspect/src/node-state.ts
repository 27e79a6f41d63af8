/**
 * What the kernel of a node holds, as one value: all that `fairlead` reads of a node. `fairlead __state` in the agent's
 * image prints it, `fairlead sysdump` keeps it. Each value has a type; the texts that other programs choose are
 * comments, and what is in `save`.
 */

import { isObject, parseJSON } from "@fairlead/base";
import type { SetState, VirtualServerState } from "@fairlead/netfilter";
import { type Expression, elementKey, type NftTable, type SetElement } from "@fairlead/netfilter/nft";
import * as z from "zod";

/** Goes up with each change that an older reader would misread. */
const NODE_STATE_FORMAT = 1;

const family = z.enum(["IPv4", "IPv6"]);

/** An address of an interface other than kube-ipvs0. */
const address = z.object({
  family,
  /** Canonical. */
  address: z.string(),
  /** Bits. */
  prefixLength: z.number(),
  interface: z.string(),
  /** `global`, `link`, `host`, … */
  scope: z.string(),
  up: z.boolean(),
});

const device = z.object({
  name: z.string(),
  /** The kernel's number. */
  index: z.number(),
  /** `veth`, `bridge`, …; absent: hardware, `lo` and the like. */
  kind: z.string().exactOptional(),
  /** The number of the bridge that it is a port of. */
  master: z.number().exactOptional(),
  addresses: z.array(z.string()),
});

/** A route of the table `main`. */
const route = z.object({
  family,
  /** The default routes are `0.0.0.0/0` and `::/0`. */
  cidr: z.string(),
  /** `blackhole`, …; absent: unicast. */
  type: z.string().exactOptional(),
  /** By which packets leave: one for each next hop. */
  devices: z.array(z.string()),
  /** The lowest counts. */
  metric: z.number().exactOptional(),
});

/** The rules of one family in one variant of iptables. */
const listing = z.object({
  family,
  variant: z.enum(["nft", "legacy"]),
  /** Whether it is the variant that the host uses. */
  inUse: z.boolean(),
  /** As iptables-save notes rules, without counters; absent: see `problem`. */
  save: z.string().exactOptional(),
  /** Why there is no listing. */
  problem: z.string().exactOptional(),
  /** There is no program that lists them. */
  notInstalled: z.boolean(),
});

const named = z.object({ name: z.string(), comment: z.string().exactOptional() });
const anyObject = <T>() => z.custom<T>(isObject);
const rule = z.object({
  expressions: z.array(anyObject<Expression>()),
  comment: z.string().exactOptional(),
  handle: z.string().exactOptional(),
});

type Chain = NftTable["chains"] extends ReadonlyMap<string, infer One> ? One : never;
type NftSet = NftTable["sets"] extends ReadonlyMap<string, infer One> ? One : never;
type Flowtable = NonNullable<NftTable["flowtables"]> extends ReadonlyMap<string, infer One> ? One : never;

/** A table of nftables: what it has by name is a list, and the numbers of rules are texts. */
const table = z.object({
  family: z.enum(["ip", "ip6"]),
  ...named.shape,
  dormant: z.literal(true).exactOptional(),
  chains: z.array(
    named.extend({ base: anyObject<NonNullable<Chain["base"]>>().exactOptional(), rules: z.array(rule) }),
  ),
  sets: z.array(
    named.extend({
      key: z.array(z.custom<NftSet["key"][number]>()),
      data: z.custom<NonNullable<NftSet["data"]>>().exactOptional(),
      objects: z.custom<NonNullable<NftSet["objects"]>>().exactOptional(),
      flags: z.array(z.custom<NftSet["flags"][number]>()),
      timeout: z.number().exactOptional(),
      size: z.number().exactOptional(),
      userData: z.string().exactOptional(),
      elements: z.array(anyObject<SetElement>()),
    }),
  ),
  flowtables: z.array(anyObject<Flowtable>()).exactOptional(),
});

const server = z.object({
  family,
  protocol: z.enum(["TCP", "UDP", "SCTP"]),
  address: z.string(),
  port: z.number(),
  scheduler: z.string(),
  flags: z.array(z.string()),
  persistenceSeconds: z.number().exactOptional(),
  others: z.array(z.string()).exactOptional(),
  destinations: z.array(
    z.object({
      address: z.string(),
      port: z.number(),
      weight: z.number(),
      forwarding: z.enum(["masquerade", "route", "tunnel"]),
    }),
  ),
}) satisfies z.ZodType<VirtualServerState>;

const set = z.object({
  name: z.string(),
  type: z.string(),
  family: family.exactOptional(),
  members: z.array(z.string()).transform((members): SetState["members"] => new Set(members)),
});

/** What a state has; a part that was not asked for, or cannot be read, is absent. */
const parts = {
  /** `uname -rm`, and `iptables --version`. */
  versions: z.object({ kernel: z.string().exactOptional(), iptables: z.string().exactOptional() }).exactOptional(),
  addresses: z.array(address).exactOptional(),
  devices: z.array(device).exactOptional(),
  routes: z.array(route).exactOptional(),
  rules: z.array(listing).exactOptional(),
  /** Names of all tables of nftables, with their families: those of iptables and of families that are not read too. */
  tableNames: z.array(z.object({ family: z.string(), name: z.string() })).exactOptional(),
  /** The tables of ip and ip6, but for those of iptables. */
  tables: z.array(table.transform(tableOf)).exactOptional(),
  servers: z
    .array(server)
    .transform((all): readonly VirtualServerState[] => all)
    .exactOptional(),
  /** Ipsets. */
  sets: z.array(set).exactOptional(),
  /** Addresses of kube-ipvs0; null: there is no such device. */
  serviceAddresses: z.array(z.string()).nullable().exactOptional(),
  /** Lists of `-m recent`: list, address, seconds since each time it was seen there. */
  recent: z.record(z.string(), z.record(z.string(), z.array(z.number()))).exactOptional(),
  /** How many connections are tracked, by `IPv4 TCP ESTABLISHED`; complete: all were counted. */
  connections: z.object({ counts: z.record(z.string(), z.number()), complete: z.boolean() }).exactOptional(),
  /** Below /proc/sys, those that are there. */
  settings: z.record(z.string(), z.number()).exactOptional(),
};

const schema = z.object({
  format: z.literal(NODE_STATE_FORMAT),
  ...parts,
  /** Why a part is absent that was asked for. */
  problems: z.record(z.string(), z.string()),
});

export type StatePart = keyof typeof parts;
/** All but the connections, which take long where there are many. */
export const STATE_PARTS: readonly StatePart[] = Object.keys(parts)
  .filter(isStatePart)
  .filter((part) => part !== "connections");

export function isStatePart(name: string): name is StatePart {
  return Object.hasOwn(parts, name);
}

export type StateParts = { readonly [Part in StatePart]: Readonly<z.output<(typeof parts)[Part]>> };

export interface NodeState extends Readonly<Partial<StateParts>> {
  readonly problems: Readonly<Partial<Record<StatePart, string>>>;
}

export type StateRoute = z.output<typeof route>;
export type RuleListing = z.output<typeof listing>;

/** As JSON, with its format. */
export function nodeStateText({ tables, sets, ...state }: NodeState): string {
  return JSON.stringify({
    format: NODE_STATE_FORMAT,
    ...state,
    ...(tables && { tables: tables.map(tableData) }),
    ...(sets && { sets: sets.map(({ members, ...one }) => ({ ...one, members: [...members] })) }),
  });
}

/**
 * @param text as `nodeStateText` gives it, untrusted; what the format does not name is dropped
 * @throws RangeError for another format, or another text
 */
export function parseNodeState(text: string): NodeState {
  const value = parseJSON(text);
  const format = isObject(value) ? value["format"] : undefined;
  if (format !== NODE_STATE_FORMAT) {
    throw new RangeError(
      typeof format === "number"
        ? `format ${format} of a node's state is not supported (supported: ${NODE_STATE_FORMAT})`
        : "not the state of a node",
    );
  }
  const result = schema.safeParse(value);
  if (!result.success) throw new RangeError(`not the state of a node: ${z.prettifyError(result.error)}`);
  const { format: _known, ...state } = result.data;
  return state;
}

function tableData({ chains, sets, flowtables, ...rest }: NftTable): z.input<typeof table> {
  return {
    ...rest,
    chains: Array.from(chains.values(), ({ rules, ...chain }) => ({
      ...chain,
      rules: rules.map(({ handle, expressions, ...one }) => ({
        ...one,
        expressions: [...expressions],
        ...(handle !== undefined && { handle: String(handle) }),
      })),
    })),
    sets: Array.from(sets.values(), ({ elements, key, flags, ...one }) => ({
      ...one,
      key: [...key],
      flags: [...flags],
      elements: [...elements.values()],
    })),
    ...(flowtables && { flowtables: [...flowtables.values()] }),
  };
}

function tableOf({ chains, sets, flowtables, ...rest }: z.output<typeof table>): NftTable {
  return {
    ...rest,
    chains: new Map(
      chains.map(({ rules, ...chain }) => [
        chain.name,
        { ...chain, rules: rules.map(({ handle, ...one }) => ({ ...one, ...(handle && { handle: BigInt(handle) }) })) },
      ]),
    ),
    sets: new Map(
      sets.map(({ elements, ...one }) => [
        one.name,
        { ...one, elements: new Map(elements.map((element) => [elementKey(element), element])) },
      ]),
    ),
    ...(flowtables && { flowtables: new Map(flowtables.map((one) => [one.name, one])) }),
  };
}
