import { isDeepStrictEqual } from "node:util";
import {
  addressHex,
  type BaseChain,
  type Hex,
  NftBatch,
  type NftFamily,
  type NftSet,
  type NftTable,
  padded,
  portHex,
  statements,
  type Verdict,
} from "@fairlead/netfilter/nft";
import { type NftablesClient, NftablesError } from "../../src/index.ts";

const { jump, lookUp } = statements;

/** A transaction under test, with what differs between the families. */
export class Draft extends NftBatch {
  address(n: number): Hex {
    return addressHex(this.family === "ip" ? `10.96.0.${n}` : `fd00:10:96::${n}`);
  }

  get addressType(): "ipv4_addr" | "ipv6_addr" {
    return this.family === "ip" ? "ipv4_addr" : "ipv6_addr";
  }

  /** A key of `services`: the n-th address, TCP, port 80. */
  service(n: number): Hex {
    return padded(this.address(n)) + padded("06") + padded(portHex(80));
  }

  addresses(name: string, facts: Partial<NftSet> = {}): this {
    return this.addSet({ name, key: [this.addressType], flags: [], ...facts });
  }

  has(set: string, n: number): this {
    return this.addElements(set, [{ key: this.address(n) }]);
  }

  maps(set: string, n: number, to: number): this {
    return this.addElements(set, [{ key: this.address(n), value: this.address(to) }]);
  }

  data(name: string): this {
    return this.addresses(name, { data: [this.addressType] });
  }

  verdicts(name: string): this {
    return this.addSet({ name, key: [this.addressType, "inet_proto", "inet_service"], data: "verdict", flags: [] });
  }

  leads(set: string, n: number, to: Verdict): this {
    return this.addElements(set, [{ key: this.service(n), value: to }]);
  }

  chains(...names: readonly string[]): this {
    for (const name of names) this.addChain({ name });
    return this;
  }

  base(name: string, hook: BaseChain["hook"] = "prerouting", type: BaseChain["type"] = "nat"): this {
    return this.addChain({ name, base: { type, hook, priority: type === "nat" ? -100 : 0, policy: "accept" } });
  }

  jumps(from: string, to: string): this {
    return this.addRule(from, { expressions: jump(to) });
  }

  remembers(chain: string, set: string, timeout?: number): this {
    const source = statements.load(this.family, "saddr", 0);
    const update = { kind: "dynset", set, operation: "update", from: 0, ...(timeout && { timeout }) } as const;
    return this.addRule(chain, { expressions: [source, update] });
  }

  looksUp(chain: string, set: string): this {
    return this.addRule(chain, {
      expressions: lookUp(this.family, ["daddr", "l4proto", "dport"], set, "verdict"),
    });
  }
}

export interface Case {
  readonly name: string;
  /** Committed first, in a table that is there; must be taken. */
  readonly given?: (to: Draft) => void;
  readonly when: (to: Draft) => void;
  /** Absent: it is taken. `CODE: what`, the message that is blamed, as `NftablesError` says it. */
  readonly refused?: string;
  /**
   * Of the table afterwards: chains with the number of their rules, sets with the number of their elements. Where it is
   * refused, all is as it was.
   */
  readonly after?: readonly string[];
}

/** A case; its end is what is there afterwards, or `CODE: what` that is refused. */
export type Row = readonly [name: string, when: Case["when"], end: string, given?: Case["given"]];

export function caseOf([name, when, end, given]: Row): Case {
  const after = end.split(", ").filter((one) => one !== "");
  return { name, when, ...(/^[A-Z]+: /.test(end) ? { refused: end } : { after }), ...(given && { given }) };
}

export interface Outcome {
  readonly refused: string | undefined;
  /** Whether a check said the same as the commit, and changed nothing. */
  readonly checked: string | undefined;
  /** By how much the generation rose. */
  readonly generations: number;
  readonly after: readonly string[] | "as before";
}

const TABLE = "fairlead-test";

/** Runs a case in a table that is there and empty, and takes the table away again. */
export async function runCase(client: NftablesClient, family: NftFamily, { given, when }: Case): Promise<Outcome> {
  const draft = (fill: Case["when"] | undefined) => {
    const batch = new Draft(family, TABLE);
    fill?.(batch);
    return batch;
  };
  const before = draft(undefined).addTable();
  given?.(before);
  await client.commit(before);
  const found = async () => {
    const table = await client.table(family, TABLE);
    return table === undefined ? ["no table"] : describe(table);
  };
  const there = await found();
  const generation = await client.generation();
  const checked = await refusal(client.check(draft(when)));
  const error = await refusal(client.commit(draft(when)));
  const generations = (await client.generation()) - generation;
  const after = await found();
  await client.commit(draft(undefined).deleteTable());
  const isAsBefore = error !== undefined && isDeepStrictEqual(after, there);
  return { refused: error, checked, generations, after: isAsBefore ? "as before" : after };
}

export function expected({ refused: error, after }: Case): Outcome {
  return { refused: error, checked: error, generations: error === undefined ? 1 : 0, after: after ?? "as before" };
}

async function refusal(work: Promise<void>): Promise<string | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    if (!(error instanceof NftablesError)) throw error;
    const { action, what, name } = error.object ?? { action: "?", what: "?", name: "?" };
    const place =
      { rule: `a rule of chain ${name}`, element: `elements of set ${name}` }[String(what)] ?? `${what} ${name}`;
    return `${error.code}: cannot ${action} ${place}`;
  }
}

function describe({ chains, sets }: NftTable): string[] {
  return [
    ...Array.from(chains.values(), ({ name, rules }) => `chain ${name} ${rules.length}`),
    ...Array.from(sets.values(), ({ name, elements, timeout, size }) =>
      [
        `set ${name} ${elements.size}`,
        ...(timeout ? [`timeout ${timeout}`] : []),
        ...(size ? [`size ${size}`] : []),
      ].join(" "),
    ),
  ];
}
