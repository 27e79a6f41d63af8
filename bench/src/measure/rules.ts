/** The rules of a node, for comparison with those of a fresh start. */

import { createHash } from "node:crypto";
import { openIptables, openNftables } from "@fairlead/kernel";
import { type NetworkNamespace, netlinkIn } from "@fairlead/kernel/netns";
import { runnerIn } from "@fairlead/lab/wire";
import {
  type Hex,
  type NftRule,
  type NftTable,
  readTables,
  UnreadableNft,
  type Verdict,
  verdictText,
} from "@fairlead/netfilter/nft";
import type { Variant } from "../proxy/measured-proxy.ts";

/**
 * What the kernel holds for services, as a digest for each chain that a packet can reach, `nat KUBE-SERVICES` → digest,
 * or for each frontend.
 */
export type RuleDigests = ReadonlyMap<string, string>;

export type RulesReader = (node: NetworkNamespace) => Promise<RuleDigests>;

export async function readRules(node: NetworkNamespace, variant: Variant): Promise<RuleDigests> {
  const iptables = await openIptables(runnerIn(node), { family: "IPv4", variant });
  const digests = new Map<string, string>();
  for (const table of ["nat", "filter"] as const) {
    const chains = new Map<string, string[]>();
    for await (const line of iptables.saveLines(table)) addLine(chains, line);
    for (const [chain, digest] of reachable(chains)) digests.set(`${table} ${chain}`, digest);
  }
  return digests;
}

export function requireSameRules(what: string, actual: RuleDigests, expected: RuleDigests): void {
  const names = new Set([...actual.keys(), ...expected.keys()]);
  const different = [...names].filter((name) => actual.get(name) !== expected.get(name));
  if (different.length === 0) return;
  const some = different.slice(0, 5).join(", ");
  throw new Error(
    `${what}: the rules of ${different.length} chains or frontends are not those of a fresh start: ${some}`,
  );
}

/** Reads what each frontend leads to, which is what the tables of both proxies have in common. */
export async function readNftRules(node: NetworkNamespace): Promise<RuleDigests> {
  return new Map((await tablesOf(node)).flatMap((table) => [...frontendsOf(table)]));
}

/** Maps that lead a packet to its service, or refuse it, in the tables of both proxies. */
const DISPATCH = ["service-ips", "service-nodeports", "no-endpoint-services", "no-endpoint-nodeports"];

/** `service-ips 0a600001…` → a digest of the endpoints. */
export function* frontendsOf(table: NftTable): Generator<readonly [frontend: string, digest: string]> {
  const maps = new Maps(table);
  for (const name of DISPATCH) {
    for (const { key, value } of table.sets.get(name)?.elements.values() ?? []) {
      if (typeof value !== "object") continue;
      const ends = [...new Set(endsOf({ table, maps, key, seen: new Set() }, value))].sort();
      yield [`${name} ${key}`, createHash("sha256").update(ends.join("\n")).digest("base64url").slice(0, 16)];
    }
  }
}

/** Rules of different service ports: their order says nothing. */
const UNORDERED = /^KUBE-(?:SERVICES|NODEPORTS|EXTERNAL-SERVICES|PROXY-FIREWALL)$/;

function addLine(chains: Map<string, string[]>, line: string): void {
  if (line.startsWith(":")) chains.set(line.slice(1, line.indexOf(" ")), []);
  if (!line.startsWith("-A ")) return;
  const end = line.indexOf(" ", 3);
  chains.get(line.slice(3, end))?.push(line.slice(end + 1));
}

/** Chains of services that the built-in chains lead to. A proxy may leave others for later: no packet meets them. */
function reachable(chains: ReadonlyMap<string, readonly string[]>): ReadonlyMap<string, string> {
  const digests = new Map<string, string>();
  const wait = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"].filter((chain) => chains.has(chain));
  for (let chain = wait.pop(); chain !== undefined; chain = wait.pop()) {
    if (digests.has(chain)) continue;
    const rules = chains.get(chain) ?? [];
    digests.set(chain, digestOf(UNORDERED.test(chain) ? [...rules].sort() : rules));
    wait.push(...rules.map(targetOf).filter((target) => chains.has(target)));
  }
  return digests;
}

function targetOf(rule: string): string {
  return /(?:^| )-[jg] (\S+)/.exec(rule)?.[1] ?? "";
}

function digestOf(lines: readonly string[]): string {
  return createHash("sha256").update(lines.join("\n")).digest("base64url").slice(0, 16);
}

/** A listing of a large table takes nft minutes. */
const LIST_MS = 20 * 60_000;
const TABLE = "kube-proxy";

/** By netlink within seconds; where another program's table has what is not known here, as `nft` shows it. */
async function tablesOf(node: NetworkNamespace): Promise<readonly NftTable[]> {
  const client = await openNftables({ open: netlinkIn(node).transactions });
  try {
    const table = await client.table("ip", TABLE);
    return table === undefined ? [] : [table];
  } catch (error) {
    if (!(error instanceof UnreadableNft)) throw error;
    const { stdout } = await runnerIn(node).run(["nft", "list", "table", "ip", TABLE], { timeoutMs: LIST_MS });
    return readTables(stdout);
  } finally {
    await client.close();
  }
}

/** A packet to a frontend on its way. */
interface Walk {
  readonly table: NftTable;
  readonly maps: Maps;
  /** The frontend's. */
  readonly key: Hex;
  /** Chains and maps that it has met. */
  readonly seen: Set<string>;
}

/** Where a packet to a frontend can end: endpoints, or a verdict. */
function* endsOf(walk: Walk, verdict: Verdict): Generator<string> {
  if (!("chain" in verdict)) {
    yield verdictText(verdict);
    return;
  }
  const { chain } = verdict;
  if (isSeen(walk, `chain ${chain}`)) return;
  for (const rule of walk.table.chains.get(chain)?.rules ?? []) yield* endsOfRule(walk, rule);
}

function* endsOfRule(walk: Walk, { expressions }: NftRule): Generator<string> {
  const constants: Hex[] = [];
  for (const expression of expressions) {
    if (expression.kind === "immediate" && "value" in expression) constants.push(expression.value);
    else if (expression.kind === "immediate") yield* endsOf(walk, expression.verdict);
    else if (expression.kind === "lookup" && expression.to !== undefined) yield* endsOfMap(walk, expression.set);
    else if (expression.kind === "nat" && constants.length > 0) yield endpointOf(constants.join(""));
  }
}

function* endsOfMap(walk: Walk, map: string): Generator<string> {
  if (isSeen(walk, `map ${map}`)) return;
  for (const value of walk.maps.valuesOf(map, walk.key)) {
    if (typeof value === "object") yield* endsOf(walk, value);
    else yield endpointOf(value);
  }
}

function isSeen({ seen }: Walk, what: string): boolean {
  const is = seen.has(what);
  seen.add(what);
  return is;
}

type Values = readonly (Hex | Verdict)[];

/** The maps of a table by the keys of frontends; with thousands of them each map is gone through once only. */
class Maps {
  readonly #table: NftTable;
  readonly #byFrontend = new Map<string, ReadonlyMap<Hex, Values>>();

  constructor(table: NftTable) {
    this.#table = table;
  }

  /** What stands under the frontend's key, with a slot behind it or not; in a map of shorter keys, all. */
  valuesOf(name: string, key: Hex): Values {
    const id = `${name} ${key.length}`;
    const index = this.#byFrontend.get(id) ?? this.#index(name, key.length);
    this.#byFrontend.set(id, index);
    return [...(index.get(key) ?? []), ...(index.get(SHORTER) ?? [])];
  }

  #index(name: string, length: number): ReadonlyMap<Hex, Values> {
    const index = new Map<Hex, (Hex | Verdict)[]>();
    for (const { key, value } of this.#table.sets.get(name)?.elements.values() ?? []) {
      if (value === undefined) continue;
      const frontend = key.length < length ? SHORTER : key.slice(0, length);
      const values = index.get(frontend);
      if (values === undefined) index.set(frontend, [value]);
      else values.push(value);
    }
    return index;
  }
}

/** In place of a key: of elements whose keys have no frontend in them. */
const SHORTER = "";

/** Address and port, without what pads them. */
function endpointOf(value: Hex): string {
  return value.slice(0, 12);
}
