import { Attributes } from "@fairlead/netfilter/netlink";
import {
  decodeChain,
  decodeElements,
  decodeRule,
  decodeSet,
  elementKey,
  FAMILY_NUMBERS,
  type NftChain,
  type NftFamily,
  type NftRule,
  type NftSet,
  type NftTable,
  nftNumbers,
  type SetElement,
} from "@fairlead/netfilter/nft";

const { CHAIN, FLAGS, MESSAGES, RULE, SET, SUBSYSTEM, TABLE } = nftNumbers;

/** nlmsghdr and nfgenmsg. */
const HEADER = 20;
const FLAGS_AT = 6;

/** One message about an object of a table, as the kernel reports it to all listeners. */
export interface TableMessage {
  readonly type: number;
  readonly flags: number;
  readonly of: Attributes;
}

/** What was told does not fit to the copy: it has to be read anew. */
export class CopyLost extends Error {
  override readonly name = "CopyLost";
}

/** @returns undefined: it is of another subsystem or table, or the end of a transaction */
export function tableMessage(
  bytes: Buffer,
  start: number,
  end: number,
  { family, name }: Pick<NftTable, "family" | "name">,
): TableMessage | undefined {
  if (bytes[start + 5] !== SUBSYSTEM || bytes[start + 16] !== FAMILY_NUMBERS[family]) return undefined;
  const of = new Attributes(bytes, start + HEADER, end);
  // The table's name is the first attribute of whatever is told.
  if (of.text(TABLE.name) !== name) return undefined;
  return { type: bytes[start + 4] ?? 0, flags: bytes.readUInt16LE(start + FLAGS_AT), of };
}

/** A copy of a table that takes what is told of it; sets are changed in place, chains are replaced. */
export class TableCopy {
  readonly #table: NftTable;
  readonly #family: NftFamily;
  readonly #chains: Map<string, NftChain>;
  readonly #sets: Map<string, NftSet & { readonly elements: Map<string, SetElement> }>;

  constructor(table: NftTable) {
    this.#table = table;
    this.#family = table.family;
    this.#chains = new Map(table.chains);
    this.#sets = new Map(Array.from(table.sets, ([name, set]) => [name, { ...set, elements: new Map(set.elements) }]));
  }

  /** As it is now; the next change may change it. */
  get table(): NftTable {
    return { ...this.#table, chains: this.#chains, sets: this.#sets };
  }

  /**
   * @throws CopyLost for what the copy cannot follow
   * @throws UnreadableNft for what is not known here
   */
  apply({ type, flags, of }: TableMessage): void {
    switch (type) {
      case MESSAGES.newTable:
      case MESSAGES.delTable:
        throw new CopyLost("the table itself changed");
      case MESSAGES.newChain:
        this.#addChain(decodeChain(of), (flags & FLAGS.create) !== 0);
        break;
      case MESSAGES.delChain:
        this.#gone(this.#chains, of.text(CHAIN.name));
        break;
      case MESSAGES.newRule:
        this.#addRule(decodeRule(of, this.#family), of.u64(RULE.position), (flags & FLAGS.append) !== 0);
        break;
      case MESSAGES.delRule:
        this.#deleteRule(of.text(RULE.chain) ?? "", of.u64(RULE.handle));
        break;
      case MESSAGES.newSet:
        this.#addSet(decodeSet(of));
        break;
      case MESSAGES.delSet:
        this.#gone(this.#sets, of.text(SET.name));
        break;
      case MESSAGES.newFlowtable:
      case MESSAGES.delFlowtable:
        // What is reported of devices is only those that came or went.
        throw new CopyLost("a flowtable changed");
      case MESSAGES.newElement:
        this.#elements(of, (elements, one) => elements.set(elementKey(one), one));
        break;
      case MESSAGES.delElement:
        this.#elements(of, (elements, one) => elements.delete(elementKey(one)));
        break;
    }
  }

  /** @param isNew the message makes chains; one that renames a chain does not */
  #addChain(chain: Omit<NftChain, "rules">, isNew: boolean): void {
    const known = this.#chains.get(chain.name);
    if (known === undefined && !isNew) throw new CopyLost(`chain ${chain.name} has a new name`);
    this.#chains.set(chain.name, { ...chain, rules: known?.rules ?? [] });
  }

  /**
   * @param after the handle of the rule before it
   * @param last whether it is the last one, where none is before it by its handle; else it is the first
   */
  #addRule(
    { chain, rule }: { readonly chain: string; readonly rule: NftRule },
    after: bigint | undefined,
    last: boolean,
  ): void {
    const { known, rules } = this.#rulesOf(chain);
    const none = last ? rules.length - 1 : -1;
    const before = after === undefined ? none : rules.findIndex(({ handle }) => handle === after);
    if (after !== undefined && before === -1) throw new CopyLost(`chain ${chain} has no rule ${after}`);
    if (rules.some(({ handle }) => handle === rule.handle)) throw new CopyLost(`chain ${chain} has that rule already`);
    this.#chains.set(chain, { ...known, rules: rules.toSpliced(before + 1, 0, rule) });
  }

  #deleteRule(chain: string, handle: bigint | undefined): void {
    const { known, rules } = this.#rulesOf(chain);
    const left = rules.filter((rule) => rule.handle !== handle);
    if (left.length !== rules.length - 1) throw new CopyLost(`chain ${chain} has no rule ${handle}`);
    this.#chains.set(chain, { ...known, rules: left });
  }

  #rulesOf(chain: string): { readonly known: NftChain; readonly rules: readonly NftRule[] } {
    const known = this.#chains.get(chain);
    if (known === undefined) throw new CopyLost(`there is no chain ${chain}`);
    return { known, rules: known.rules };
  }

  #addSet(set: Omit<NftSet, "elements">): void {
    this.#sets.set(set.name, { ...set, elements: this.#sets.get(set.name)?.elements ?? new Map() });
  }

  #elements(of: Attributes, take: (elements: Map<string, SetElement>, one: SetElement) => void): void {
    const { set: name, elements } = decodeElements(of);
    const set = this.#sets.get(name);
    if (set === undefined) throw new CopyLost(`there is no set ${name}`);
    for (const one of elements) take(set.elements, one);
  }

  #gone(among: Map<string, unknown>, name: string | undefined): void {
    if (name === undefined || !among.delete(name)) throw new CopyLost(`there is no ${name}`);
  }
}
