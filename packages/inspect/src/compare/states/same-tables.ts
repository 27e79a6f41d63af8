import {
  addressHex,
  type DataType,
  type Expression,
  type Hex,
  lengthOf,
  type NftChain,
  type NftSet,
  type NftTable,
  portHex,
  ruleText,
  type SetElement,
} from "@fairlead/netfilter/nft";
import type { Heading } from "./same-rules.ts";

/** An address or a port, as tables of nftables know packets by them. */
type Mark = string;

/**
 * Tells without a tracer where nothing has changed between tables of nftables whose chains are the same and whose sets
 * differ in elements only, as where services came, changed or went: an element says something of packets with its
 * addresses, or where its key has none, with its port.
 */
export class SameTables {
  readonly #isComparable: boolean;
  /** What elements that differ speak of. */
  readonly #changed = new Set<Mark>();
  /** Where maps translate to what has a mark. */
  readonly #leads = new Map<Mark, Set<Mark>>();
  /** Likewise of any packet: by a number that was drawn. */
  readonly #drawn = new Set<Mark>();

  /** @param others addresses that packets may come from, or be given on their way: of senders, and of the node */
  constructor(before: readonly NftTable[], after: readonly NftTable[], others: readonly string[]) {
    const [old, now] = [byName(before), byName(after)];
    const constants = [...old.values()]
      .flatMap(rulesOf)
      .flatMap(({ expressions }) => expressions.flatMap(marksOfConstant));
    this.#isComparable =
      old.size === now.size &&
      [...old].every(([name, table]) => this.#compare(table, now.get(name))) &&
      ![...constants, ...this.#drawn, ...others.map(addressMark)].some((mark) => this.#changed.has(mark));
  }

  /** False also where it cannot be told. */
  for({ address, port }: Heading): boolean {
    if (!this.#isComparable) return false;
    const marks = new Set([addressMark(address), portMark(port)]);
    for (const mark of marks) {
      if (this.#changed.has(mark)) return false;
      for (const next of this.#leads.get(mark) ?? []) marks.add(next);
    }
    return true;
  }

  #compare(before: NftTable, after: NftTable | undefined): boolean {
    if (after === undefined) return false;
    const sets = new Set([...before.sets.keys(), ...after.sets.keys()]);
    const own = ownChains(before, after);
    return (
      isSameChains(before, after, own) &&
      [...sets].every((name) => this.#compareSet(before.sets.get(name), after.sets.get(name), own))
    );
  }

  #compareSet(before: NftSet | undefined, after: NftSet | undefined, own: ReadonlySet<string>): boolean {
    const set = after ?? before;
    if (set === undefined || (before && after && !isSameKind(before, after))) return false;
    const keys = new Set([...(before?.elements.keys() ?? []), ...(after?.elements.keys() ?? [])]);
    return [...keys].every((key) =>
      this.#compareElement(set, before?.elements.get(key), after?.elements.get(key), own),
    );
  }

  /** False: it differs, for unknown senders. */
  #compareElement(
    set: NftSet,
    before: SetElement | undefined,
    after: SetElement | undefined,
    own: ReadonlySet<string>,
  ): boolean {
    const { addresses, ports } = marksIn(set.key, (after ?? before)?.key ?? "");
    const marks = addresses.length > 0 ? addresses : ports;
    for (const one of [before, after]) this.#lead(set, marks, one?.value);
    if (isSameElement(before, after) && !leadsTo(own, after?.value)) return true;
    for (const mark of marks) this.#changed.add(mark);
    return marks.length > 0 && !set.flags.includes("interval");
  }

  #lead({ data }: NftSet, from: readonly Mark[], value: SetElement["value"]): void {
    if (data === undefined || data === "verdict" || typeof value !== "string") return;
    const { addresses, ports } = marksIn(data, value);
    if (from.length === 0) for (const to of [...addresses, ...ports]) this.#drawn.add(to);
    for (const mark of from) {
      const known = this.#leads.get(mark) ?? new Set();
      this.#leads.set(mark, known);
      for (const to of [...addresses, ...ports]) known.add(to);
    }
  }
}

function byName(tables: readonly NftTable[]): ReadonlyMap<string, NftTable> {
  return new Map(tables.map((table) => [`${table.family} ${table.name}`, table]));
}

const rulesOf = ({ chains }: NftTable) => Array.from(chains.values(), ({ rules }) => rules).flat();

/** Chains that only one of the two has. */
function ownChains(before: NftTable, after: NftTable): ReadonlySet<string> {
  const names = new Set([...before.chains.keys(), ...after.chains.keys()]);
  return new Set([...names].filter((name) => !before.chains.has(name) || !after.chains.has(name)));
}

/** Those that only one side has do nothing where packets do not come to them by themselves, or from others. */
function isSameChains(before: NftTable, after: NftTable, own: ReadonlySet<string>): boolean {
  const alone = [...own].map((name) => before.chains.get(name) ?? after.chains.get(name));
  if (alone.some((chain) => chain?.base !== undefined)) return false;
  return [...before.chains.values()].every((old) => {
    const now = after.chains.get(old.name);
    const verdicts = old.rules.flatMap(({ expressions }) =>
      expressions.flatMap((one) => ("verdict" in one ? one.verdict : [])),
    );
    return (
      now === undefined ||
      (chainText(old, before) === chainText(now, after) && !verdicts.some((one) => leadsTo(own, one)))
    );
  });
}

function leadsTo(chains: ReadonlySet<string>, value: SetElement["value"]): boolean {
  return typeof value === "object" && "chain" in value && chains.has(value.chain);
}

function chainText({ base, rules }: NftChain, table: NftTable): string {
  return [JSON.stringify(base), ...rules.map(({ expressions }) => ruleText({ expressions }, table))].join("\n");
}

function isSameKind(one: NftSet, other: NftSet): boolean {
  const kind = ({ key, data, flags }: NftSet) => JSON.stringify([key, data, flags.toSorted()]);
  return kind(one) === kind(other);
}

/** How long an element stays makes no difference as long as it is there. */
function isSameElement(one: SetElement | undefined, other: SetElement | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return one.key === other.key && JSON.stringify(one.value) === JSON.stringify(other.value);
}

const markOfAddress = (hex: Hex): Mark => `a${hex}`;
const markOfPort = (hex: Hex): Mark => `p${hex}`;

const addressMark = (address: string): Mark => markOfAddress(addressHex(address));
const portMark = (port: number): Mark => markOfPort(portHex(port));

/** Those in a key or a value. */
function marksIn(types: readonly DataType[], hex: Hex): { addresses: readonly Mark[]; ports: readonly Mark[] } {
  const [addresses, ports]: [Mark[], Mark[]] = [[], []];
  let at = 0;
  for (const type of types) {
    const part = hex.slice(at, at + 2 * lengthOf([type]));
    if (type === "ipv4_addr" || type === "ipv6_addr") addresses.push(markOfAddress(part));
    if (type === "inet_service") ports.push(markOfPort(part));
    // Parts begin at multiples of four bytes.
    at += Math.ceil(part.length / 8) * 8;
  }
  return { addresses, ports };
}

/** What a constant may be that a rule translates to: an address, a port, or both of the same bytes. */
function marksOfConstant(expression: Expression): readonly Mark[] {
  if (expression.kind !== "immediate" || !("value" in expression)) return [];
  return [markOfAddress(expression.value), markOfPort(expression.value.slice(0, 4))];
}
