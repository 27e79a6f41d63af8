/** The backend of kernelspace mode for one IP family. */

import { inSlices } from "@fairlead/base";
import type { Backend, Difference, ForwardingPlan, PlanChange, SyncReport } from "@fairlead/core";
import { removeWindowsMode } from "./cleanup.ts";
import { canonicalId } from "./endpoints.ts";
import { windowsSemantics } from "./facts.ts";
import { fullSync, networkOf, replaceGroup } from "./full-sync.ts";
import type { Touched } from "./ledger.ts";
import { type ResolvedOptions, resolveOptions, type WindowsOptions } from "./options.ts";
import { featuresOf, type HnsFeatures } from "./plan/context.ts";
import type { HcnPort, Network } from "./port.ts";
import { type Programmed, settle, type Written } from "./work.ts";

/**
 * The kernelspace mode of one IP family. Asks nothing of HCN until it is called.
 *
 * @throws RangeError when the network has no name
 */
export function createWindowsBackend(port: HcnPort, options: WindowsOptions): Backend {
  return new WindowsBackend(port, resolveOptions(options));
}

class WindowsBackend implements Backend {
  readonly semantics = windowsSemantics;
  readonly #port: HcnPort;
  readonly #options: ResolvedOptions;
  /** What HNS can do; what it turns out not to is taken out. */
  #features: { -readonly [Name in keyof HnsFeatures]: HnsFeatures[Name] } | undefined;
  /** Undefined until a full sync was accepted, and after anything was not. */
  #programmed: Programmed | undefined;
  /** As it was last read: what it says of other nodes decides about endpoints. */
  #network: Network | undefined;
  #known: Programmed["balancers"] = new Map();

  constructor(port: HcnPort, options: ResolvedOptions) {
    this.#port = port;
    this.#options = options;
  }

  async sync(plan: ForwardingPlan): Promise<SyncReport> {
    this.#programmed = undefined;
    this.#features ??= featuresOf(await this.#port.version());
    const { programmed, written, network } = await fullSync(
      this.#port,
      plan,
      this.#known,
      this.#options,
      this.#features,
    );
    this.#network = network;
    this.#programmed = programmed;
    this.#known = programmed.balancers;
    return report("full", programmed, written);
  }

  async apply(plan: ForwardingPlan, change: PlanChange): Promise<SyncReport> {
    const before = this.#programmed;
    const features = this.#features;
    if (before === undefined || features === undefined || change.node !== undefined) return this.sync(plan);
    this.#programmed = undefined;
    const touched = await inSlices(this.#replaceGroups(change, before), this.#options);
    if (await this.#isNetworkOther(before, touched)) return this.sync(plan);
    const local = touched.locals.some((address) => before.endpoints.idOf({ address, local: true }) === undefined);
    if (local) await before.endpoints.refresh(this.#port, before.network);
    const written = await settle(this.#port, before, touched, features);
    this.#programmed = before;
    return report("partial", before, written);
  }

  async difference(_plan: ForwardingPlan): Promise<Difference | undefined> {
    const programmed = this.#programmed;
    if (programmed === undefined) return undefined;
    const what = await findDifference(this.#port, programmed, this.#options);
    return what.length === 0 ? undefined : { what, repaired: false };
  }

  async cleanup(): Promise<void> {
    this.#programmed = undefined;
    await removeWindowsMode(this.#port, this.#options.networkName);
  }

  *#replaceGroups(
    { groups }: PlanChange,
    { ledger, context }: Programmed,
  ): Generator<void, Touched & { readonly locals: readonly string[] }> {
    const touched = { keys: [] as string[], addresses: [] as string[], locals: [] as string[] };
    for (const [id, { after }] of groups) {
      const { keys, addresses, objects } = replaceGroup(ledger, id, after, context, this.#options.onProblem);
      touched.keys.push(...keys);
      touched.addresses.push(...addresses);
      for (const { endpoints } of objects?.balancers ?? []) {
        for (const { address, local } of endpoints) if (local) touched.locals.push(address);
      }
      yield;
    }
    return touched;
  }

  /** Where a node came to an overlay, its subnet is in the network: it is read before endpoints are made. */
  async #isNetworkOther({ context, endpoints, ledger }: Programmed, { addresses }: Touched): Promise<boolean> {
    if (context.overlay === undefined) return false;
    const isNew = (address: string) =>
      ledger.endpoint(address) !== undefined && endpoints.idOf({ address, local: false }) === undefined;
    if (!addresses.some(isNew)) return false;
    const network = await networkOf(this.#port, this.#options.networkName);
    return JSON.stringify(network) !== JSON.stringify(this.#network);
  }
}

/** What of HCN is not as it was programmed, in words. */
async function findDifference(
  port: HcnPort,
  { network, balancers, endpoints, refused, missing }: Programmed,
  { networkName }: ResolvedOptions,
): Promise<readonly string[]> {
  const now = await networkOf(port, networkName);
  if (now.ID !== network) return [`HCN network ${networkName} was made anew`];
  const ids = new Set((await port.loadBalancerIds()).map(canonicalId));
  const gone = [...balancers].filter(([, { ID }]) => !ids.has(ID)).map(([key]) => `load balancer ${key} is gone`);
  const there = new Set((await port.endpointIds(network)).map(canonicalId));
  const used = new Set([...balancers.values()].flatMap(({ HostComputeEndpoints = [] }) => HostComputeEndpoints));
  const lost = [...used].filter((id) => endpoints.has(id) && !there.has(id)).map((id) => `endpoint ${id} is gone`);
  const came = missing.size > 0 && [...there].some((id) => !endpoints.has(id));
  return [
    ...gone,
    ...lost,
    ...refused.values(),
    ...(came ? [`endpoints of ${[...missing].join(", ")} may be there now`] : []),
  ];
}

function report(kind: SyncReport["kind"], { balancers, ledger, refused }: Programmed, written: Written): SyncReport {
  return {
    kind,
    objects: {
      loadBalancers: { total: balancers.size, written: written.loadBalancers },
      remoteEndpoints: { total: [...ledger.addresses].length, written: written.remoteEndpoints },
    },
    ...(refused.size > 0 && { refused: [...refused.values()] }),
  };
}
