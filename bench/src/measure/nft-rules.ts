import { createHash } from "node:crypto";
import { openNftables } from "@fairlead/kernel";
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
import type { RuleDigests } from "./rules.ts";

/** Maps that lead a packet to its service, or refuse it, in the tables of both proxies. */
const DISPATCH = ["service-ips", "service-nodeports", "no-endpoint-services", "no-endpoint-nodeports"];

/** A listing of a large table takes nft minutes. */
const LIST_MS = 20 * 60_000;
const TABLE = "kube-proxy";

/** Reads what each frontend leads to, which is what the tables of both proxies have in common. */
export async function readNftRules(node: NetworkNamespace): Promise<RuleDigests> {
  return new Map((await tablesOf(node)).flatMap((table) => [...frontendsOf(table)]));
}

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
