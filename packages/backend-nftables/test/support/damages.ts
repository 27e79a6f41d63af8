import type { Backend, Difference } from "@fairlead/core";
import { NftBatch, type NftTable } from "@fairlead/netfilter/nft";

const batch = () => new NftBatch("ip", "kube-proxy");

/** What is done to a table by hand, and what is said of it; without chains and sets that a table may lack. */
export const DAMAGES: Readonly<Record<string, readonly [(table: NftTable) => NftBatch, string]>> = {
  "the table deleted": [() => batch().deleteTable(), "the table is missing"],
  "a chain flushed": [() => batch().flushChain("services"), "chain services differs in its rules (0, expected "],
  "a rule too many": [
    ({ chains }) => batch().addRule("services", { expressions: chains.get("services")?.rules[0]?.expressions ?? [] }),
    "chain services differs in its rules (",
  ],
  "a set flushed": [() => batch().flushSet("service-ips"), "set service-ips differs in its elements ("],
  "an element deleted": [
    ({ sets }) =>
      batch().deleteElements("cluster-ips", [...(sets.get("cluster-ips")?.elements.keys() ?? [])].slice(0, 1)),
    "set cluster-ips differs in its elements (1 missing)",
  ],
  "an element that leads elsewhere": [
    ({ sets }) => {
      const [key = ""] = sets.get("service-ips")?.elements.keys() ?? [];
      const value = { kind: "goto", chain: "reject-chain" } as const;
      return batch().deleteElements("service-ips", [key]).addElements("service-ips", [{ key, value }]);
    },
    "set service-ips differs in its elements (1 different)",
  ],
  "an element too many": [
    () => batch().addElements("cluster-ips", [{ key: "0a630909" }]),
    "set cluster-ips differs in its elements (1 too many)",
  ],
  "a chain at a hook": [
    () =>
      batch().addChain({
        name: "theirs",
        base: { type: "filter", hook: "forward", priority: -500, policy: "drop" },
      }),
    "chain theirs is at the hook forward",
  ],
};

/** A look that needs no plan. */
export function lookedAt(backend: Backend): Promise<Difference | undefined> {
  return backend.difference(undefined as never);
}
