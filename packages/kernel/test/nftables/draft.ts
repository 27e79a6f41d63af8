import {
  addressHex,
  type BaseChain,
  type Hex,
  NftBatch,
  type NftSet,
  padded,
  portHex,
  statements,
  type Verdict,
} from "@fairlead/netfilter/nft";

const { jump, lookUp } = statements;

/** A transaction under test, with what differs between the families. */
export class Draft extends NftBatch {
  /** The n-th address. */
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

  /** A set of addresses. */
  addresses(name: string, facts: Partial<NftSet> = {}): this {
    return this.addSet({ name, key: [this.addressType], flags: [], ...facts });
  }

  /** A map of addresses to addresses. */
  data(name: string): this {
    return this.addresses(name, { data: [this.addressType] });
  }

  /** A map of services to verdicts. */
  verdicts(name: string): this {
    return this.addSet({ name, key: [this.addressType, "inet_proto", "inet_service"], data: "verdict", flags: [] });
  }

  /** An element of such a map. */
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

  /** Packets put their source into a set. */
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
  /** Of the table afterwards: chains with the number of their rules, sets with the number of their elements. */
  readonly after?: readonly string[];
}
