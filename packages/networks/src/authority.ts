/** Who may define which CIDR: prefix filters, as BGP has them. */
import { containsCIDR, PrefixMap, prefixLengthOf } from "@fairlead/base";
import { endpointOwn, type NetworksSettings, type Side } from "./settings.ts";

/** A CIDR that the configuration gives to a side: a written one, or an entry of a source's `within`. */
interface OperatorCIDR {
  readonly cidr: string;
  /** Names the field in messages: `clusterCIDR`, `within of kube-ovn-subnets`. */
  readonly field: string;
}

/** Whether a CIDR may take effect, as far as the configuration decides; `free`: it says nothing of the CIDR. */
export type Ruling =
  | { readonly kind: "believed" | "free" }
  | { readonly kind: "refused"; readonly why: string }
  /** It lies in what the configuration gives to this proxy. */
  | { readonly kind: "inside"; readonly around: OperatorCIDR };

export interface LearnedCIDR {
  readonly side: Side;
  readonly source: string;
  /** Canonical; as written where it is not a CIDR. */
  readonly cidr: string;
}

/**
 * Decides whether the configuration lets a source define a CIDR. The longest CIDR that the operator wrote around it
 * decides, so that a wide `within` does not give away what a narrower CIDR says.
 */
export function authority(
  settings: Pick<NetworksSettings, "written" | "sources" | "within">,
): (learned: LearnedCIDR) => Ruling {
  const { written, within } = settings;
  const entries = entriesOf(settings);
  return ({ side, source, cidr }) => {
    const filter = within?.get(source);
    const around = (list: readonly string[]) => list.filter((one) => containsCIDR(one, cidr));
    const filtered = around(filter ?? []);
    if (filter !== undefined && filtered.length === 0) {
      return refused(`lies in no entry of within of ${source} (${filter.slice(0, 3).join(", ")})`);
    }
    const entry = longest([...filtered, ...around(written[side])]);
    const across = entries[side === "own" ? "excluded" : "own"];
    const outer = across.around(cidr).at(-1);
    if (outer !== undefined && (entry === undefined || prefixLengthOf(outer.cidr) >= prefixLengthOf(entry))) {
      if (side === "excluded") return { kind: "inside", around: outer };
      return refused(`lies in ${outer.cidr} (${outer.field}), which is another network's`);
    }
    if (entry !== undefined) return { kind: "believed" };
    return side === "excluded" ? FREE : unlessAround(cidr, across);
  };
}

const FREE: Ruling = { kind: "free" };

/** A CIDR of our own must not take what lies in it of another network's. */
function unlessAround(cidr: string, theirs: PrefixMap<OperatorCIDR>): Ruling {
  const inner = Array.from(theirs.within(cidr)).find((one) => one.cidr !== cidr);
  return inner ? refused(`contains ${inner.cidr} (${inner.field}), which is another network's`) : FREE;
}

function refused(why: string): Ruling {
  return { kind: "refused", why };
}

function entriesOf(
  settings: Pick<NetworksSettings, "written" | "sources" | "within">,
): Readonly<Record<Side, PrefixMap<OperatorCIDR>>> {
  const { written, sources, within } = settings;
  const filtersOf = (side: Side) =>
    sources[side].flatMap(({ id }) =>
      (within?.get(id) ?? []).map((cidr): OperatorCIDR => ({ cidr, field: `within of ${id}` })),
    );
  const listOf = (cidrs: readonly string[], field: string) => cidrs.map((cidr): OperatorCIDR => ({ cidr, field }));
  const mapOf = (all: readonly OperatorCIDR[]) =>
    all.reduce((entries, one) => entries.with(one.cidr, one), PrefixMap.empty<OperatorCIDR>());
  return {
    own: mapOf([...filtersOf("own"), ...listOf(endpointOwn(settings), "clusterCIDR")]),
    excluded: mapOf([...filtersOf("excluded"), ...listOf(written.excluded, "excludeClusterCIDRs")]),
  };
}

function longest(cidrs: readonly string[]): string | undefined {
  return cidrs.toSorted((a, b) => prefixLengthOf(b) - prefixLengthOf(a))[0];
}
