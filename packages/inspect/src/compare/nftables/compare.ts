import type { Hex, NftTable } from "@fairlead/netfilter/nft";
import type { Finding } from "../rules/rules.ts";
import { compareChains } from "./chains.ts";
import { kubeProxyKeys } from "./kube-proxy.ts";
import { type OwnerOf, ownersIn, serviceOf } from "./owners.ts";
import { pooledEndpoints } from "./pools.ts";
import { compareSets } from "./sets.ts";

/**
 * How a table of a kernel differs from the one that a plan stands for, as data: chains, rules, sets, elements. In which
 * slots endpoints stand, which class a service is in, comments and remembered clients make no difference, nor does what
 * kube-proxy has for a service in chains of its own (`isKubeProxyTable`).
 * A step is a chain, an element or a frontend.
 *
 * @param actual undefined: there is no such table
 */
export function* compareNftables(
  expected: NftTable,
  actual: NftTable | undefined,
): Generator<void, readonly Finding[], void> {
  const name = `table ${expected.family} ${expected.name}`;
  if (actual === undefined) return [{ kind: "missing", where: name, what: "the table" }];
  const ownerOf = yield* ownersIn(expected, actual);
  const elsewhere = kubeProxyKeys(actual);
  const kubeProxys = elsewhere.size > 0;
  return [
    ...compareChains(expected, actual, kubeProxys),
    ...(yield* compareSets(expected, actual, ownerOf, kubeProxys)),
    ...(yield* comparePools(expected, actual, ownerOf, elsewhere)),
  ];
}

/**
 * Endpoints by frontend.
 *
 * @param elsewhere frontends that kube-proxy serves by chains of its own
 */
function* comparePools(
  expected: NftTable,
  actual: NftTable,
  ownerOf: OwnerOf,
  elsewhere: ReadonlySet<Hex>,
): Generator<void, readonly Finding[], void> {
  const wanted = yield* pooledEndpoints(expected);
  const found = yield* pooledEndpoints(actual);
  const findings: Finding[] = [];
  for (const id of new Set([...wanted.keys(), ...found.keys()])) {
    yield;
    const [want, have] = [wanted.get(id), found.get(id)];
    const { pool, key, frontend } = want ?? have ?? { pool: "", key: "", frontend: "" };
    if (elsewhere.has(key)) continue;
    const service = ownerOf(key);
    const finding = (kind: Finding["kind"]) => (endpoint: string) => ({
      kind,
      where: `${pool} of ${frontend}`,
      what: endpoint,
      ...(service !== undefined && { service }),
    });
    const [endpoints, foundEndpoints] = [want?.endpoints ?? new Set<string>(), have?.endpoints ?? new Set<string>()];
    findings.push(
      ...[...endpoints].filter((one) => !foundEndpoints.has(one)).map(finding("missing")),
      ...[...foundEndpoints].filter((one) => !endpoints.has(one)).map(finding("extra")),
    );
  }
  return findings;
}

/** The services of which a table has anything, as its elements name them. */
export function servicesInTable({ sets }: NftTable): ReadonlySet<string> {
  return new Set(
    [...sets.values()].flatMap(({ elements }) => [...elements.values()].flatMap((one) => serviceOf(one) ?? [])),
  );
}
