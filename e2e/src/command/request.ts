import { type CniFlavor, loadFlavor } from "@fairlead/lab/cni/flavor";
import { providers } from "@fairlead/lab/provider/index";
import { type ClusterRequest, ELSEWHERE, type Provider } from "@fairlead/lab/provider/provider";
import { type RunOptions, UsageError } from "./options.ts";

/** A cluster to be built for each mode. */
export interface Requested {
  readonly provider: Provider;
  readonly requests: readonly ClusterRequest[];
}

/** @throws UsageError for names that nobody has */
export async function readRequest(options: RunOptions): Promise<Requested> {
  const provider = providers.get(options.provider);
  if (provider === undefined) {
    throw new UsageError(`--provider ${options.provider}: give one of ${[...providers.keys()].join(", ")}`);
  }
  const known = await provider.flavors();
  const strange = options.cni.find((name) => !known.includes(name));
  if (strange !== undefined) throw new UsageError(`--cni ${strange}: ${provider.name} has ${known.join(", ")}`);
  const flavors = await Promise.all(options.cni.map(loadFlavor));
  const names = flavors.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new UsageError(`--cni ${options.cni.join(",")}: a cluster has one ${twice}`);
  const excluded = options.excludeCni ?? excludedByDefault(flavors);
  const excludedHere = excluded.filter((name) => name !== ELSEWHERE);
  const foreign = excludedHere.find((name) => !names.includes(name));
  if (foreign !== undefined)
    throw new UsageError(`--exclude-cni ${foreign}: --cni does not have it, nor is it ${ELSEWHERE}`);
  if (excludedHere.length === options.cni.length) {
    throw new UsageError(`--exclude-cni ${excluded.join(",")}: leaves Fairlead no network; --cni needs one more`);
  }
  const { cni, nodes, families, kubernetes } = options;
  const overlay = await overlayOf(provider, options);
  const common = { cni, excluded, nodes, families, kubernetes, ...overlay };
  return { provider, requests: options.modes.map((mode) => ({ ...common, mode })) };
}

/** @throws UsageError when the provider has none of that name */
async function overlayOf(provider: Provider, { overlay }: RunOptions): Promise<Pick<ClusterRequest, "overlay">> {
  if (overlay === undefined) return {};
  const known = (await provider.overlays?.()) ?? [];
  if (known.includes(overlay)) return { overlay };
  throw new UsageError(`--overlay ${overlay}: ${provider.name} has ${known.join(", ") || "no manifests"}`);
}

/**
 * Where several networks are side by side: those with a load balancer of their own. Where none has one, the last, so
 * that there is one. A single network is never excluded.
 */
function excludedByDefault(flavors: readonly CniFlavor[]): readonly string[] {
  const names = flavors.map(({ name }) => name);
  if (names.length === 1) return [];
  const own = flavors.filter(({ ownLoadBalancer }) => ownLoadBalancer).map(({ name }) => name);
  return own.length > 0 && own.length < names.length ? own : names.slice(-1);
}
