import { containsCIDR, PrefixMap, prefixLengthOf } from "@fairlead/base";
import type { Claim, Side } from "./claim.ts";
import type { NetworksSettings } from "./types.ts";
import { endpointOwn, type StaticCIDRs } from "./written.ts";

/** A CIDR that the configuration gives to a side: a written one, or an entry of a source's `within`. */
export interface OperatorCIDR {
  readonly cidr: string;
  readonly side: Side;
  /** Names the field in messages: `clusterCIDR`, `within of kube-ovn-subnets`. */
  readonly field: string;
}

/** What the configuration says of who may define which CIDR. */
export interface AuthoritySettings {
  readonly written: StaticCIDRs;
  /** `within` of the sources that have one, canonical. */
  readonly within: ReadonlyMap<string, readonly string[]>;
  readonly sides: ReadonlyMap<string, Side>;
}

export function authoritySettings(
  settings: Pick<NetworksSettings, "written" | "sources" | "within">,
): AuthoritySettings {
  const { written, sources, within = new Map() } = settings;
  const sides = (["own", "excluded"] as const).flatMap((side) => sources[side].map(({ id }) => [id, side] as const));
  return { written, within, sides: new Map(sides) };
}

/** Whether a claim may take effect, as far as the configuration decides; `free`: it says nothing of the claim. */
export type Word =
  | { readonly kind: "believed" | "free" }
  | { readonly kind: "refused"; readonly why: string }
  /** It lies in what the configuration gives to this proxy. */
  | { readonly kind: "inside"; readonly around: OperatorCIDR };

/**
 * Who may define which CIDR: prefix filters, as BGP has them. The longest CIDR that the operator wrote around a claim
 * decides whether it is believed, so that a wide `within` does not give away what a narrower CIDR says.
 */
export class Authority {
  readonly #within: AuthoritySettings["within"];
  readonly #written: StaticCIDRs;
  readonly #entries: Readonly<Record<Side, PrefixMap<OperatorCIDR>>>;

  constructor({ written, within, sides }: AuthoritySettings) {
    this.#within = within;
    const filters = Array.from(within).flatMap(([source, cidrs]) => {
      const field = `within of ${source}`;
      return cidrs.map((cidr): OperatorCIDR => ({ cidr, side: sides.get(source) ?? "excluded", field }));
    });
    this.#written = written;
    const theirs = filters.filter(({ side }) => side === "excluded").map(({ cidr }) => cidr);
    const lists = [
      ...endpointOwn(written, theirs).map((cidr): OperatorCIDR => ({ cidr, side: "own", field: "clusterCIDR" })),
      ...written.excluded.map((cidr): OperatorCIDR => ({ cidr, side: "excluded", field: "excludeClusterCIDRs" })),
    ];
    const all = [...filters, ...lists];
    const of = (side: Side) =>
      all
        .filter((one) => one.side === side)
        .reduce((entries, one) => entries.with(one.cidr, one), PrefixMap.empty<OperatorCIDR>());
    this.#entries = { own: of("own"), excluded: of("excluded") };
  }

  /** @param claim with a CIDR */
  on({ side, source, cidr }: Pick<Claim, "side" | "source" | "cidr">): Word {
    const filter = this.#within.get(source);
    const filtered = filter?.filter((one) => containsCIDR(one, cidr));
    if (filter !== undefined && filtered?.length === 0) {
      return { kind: "refused", why: `lies in no entry of within of ${source} (${filter.slice(0, 3).join(", ")})` };
    }
    const written = this.#written[side].filter((one) => containsCIDR(one, cidr));
    const entry = longest([...(filtered ?? []), ...written]);
    const across = this.#entries[side === "own" ? "excluded" : "own"];
    const around = across.around(cidr).at(-1);
    if (around !== undefined && (entry === undefined || prefixLengthOf(around.cidr) >= prefixLengthOf(entry))) {
      if (side === "excluded") return { kind: "inside", around };
      return { kind: "refused", why: `lies in ${around.cidr} (${around.field}), which is another network's` };
    }
    if (entry !== undefined) return { kind: "believed" };
    if (side === "excluded") return { kind: "free" };
    const inner = Array.from(across.within(cidr)).find((one) => one.cidr !== cidr);
    if (inner === undefined) return { kind: "free" };
    return { kind: "refused", why: `contains ${inner.cidr} (${inner.field}), which is another network's` };
  }
}

function longest(cidrs: readonly string[]): string | undefined {
  return cidrs.toSorted((a, b) => prefixLengthOf(b) - prefixLengthOf(a))[0];
}
