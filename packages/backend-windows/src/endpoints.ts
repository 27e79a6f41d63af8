/** The endpoints of the network, by their addresses. */

import { familyOf } from "@fairlead/base";
import type { PlanEndpoint } from "@fairlead/core";
import type { PlanContext } from "./plan/context.ts";
import { isRemote, macOf } from "./plan/objects.ts";
import type { Endpoint, HcnPort } from "./port.ts";

/** HCN's endpoints of one network as they were last read; they do not change while they are there. */
export class Endpoints {
  readonly #byId = new Map<string, Endpoint>();
  readonly #local = new Map<string, string>();
  readonly #remote = new Map<string, string>();

  /** Reads which there are; of those that are known nothing is read again. */
  async refresh(port: HcnPort, network: string): Promise<void> {
    const ids = new Set((await port.endpointIds(network)).map(canonicalId));
    for (const id of [...this.#byId.keys()]) if (!ids.has(id)) this.delete(id);
    for (const id of ids) {
      if (this.#byId.has(id)) continue;
      const endpoint = await port.endpoint(id);
      if (endpoint !== undefined) this.add({ ...endpoint, ID: id });
    }
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  add(endpoint: Endpoint): void {
    this.#byId.set(endpoint.ID, endpoint);
    const addresses = isRemote(endpoint) ? this.#remote : this.#local;
    for (const { IpAddress } of endpoint.IpConfigurations ?? []) {
      if (!addresses.has(IpAddress)) addresses.set(IpAddress, endpoint.ID);
    }
  }

  delete(id: string): void {
    const endpoint = this.#byId.get(id);
    this.#byId.delete(id);
    for (const { IpAddress } of endpoint?.IpConfigurations ?? []) {
      for (const addresses of [this.#local, this.#remote]) {
        if (addresses.get(IpAddress) === id) addresses.delete(IpAddress);
      }
    }
  }

  /** A pod of this node is HCN's own; an address elsewhere may be one of those as well (upstream prefers it too). */
  idOf({ address, local }: Pick<PlanEndpoint, "address" | "local">): string | undefined {
    return this.#local.get(address) ?? (local ? undefined : this.#remote.get(address));
  }

  remote(address: string): Endpoint | undefined {
    const id = this.#remote.get(address);
    return id === undefined ? undefined : this.#byId.get(id);
  }

  /** Those elsewhere that a service proxy made for a family: this one before, or kube-proxy. */
  *made({
    overlay,
    family,
  }: Pick<PlanContext, "overlay" | "family">): Generator<{ readonly id: string; readonly address: string }> {
    for (const endpoint of this.#byId.values()) {
      const [{ IpAddress: address } = { IpAddress: "" }] = endpoint.IpConfigurations ?? [];
      if (address === "" || familyOf(address) !== family || !isRemote(endpoint)) continue;
      const mac = canonicalMac(endpoint.MacAddress);
      const virtual = overlay !== undefined && mac === canonicalMac(overlay.mac);
      if (virtual || mac === canonicalMac(macOf(address))) yield { id: endpoint.ID, address };
    }
  }
}

/** GUIDs are the same in capitals. */
export function canonicalId(id: string): string {
  return id.toLowerCase();
}

function canonicalMac(mac = ""): string {
  return mac.replaceAll(":", "-").toLowerCase();
}
