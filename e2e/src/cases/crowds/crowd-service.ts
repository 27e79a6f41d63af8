import { IP_FAMILIES } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { CROWD_PORT, crowdEndpoint } from "@fairlead/lab/plain/crowd";
import { endpointSlice, type RawObject, service } from "@fairlead/testkit";

/** A service with session affinity, in both families. */
export interface CrowdService {
  readonly name: string;
  /** Which addresses it has: services with the same number have the same ones. */
  readonly number: number;
  readonly seconds: number;
  /** Numbers of the endpoints. */
  readonly endpoints: readonly number[];
}

export const SERVICE_PORT = 80;

export function crowdAddress({ number }: CrowdService, family: IPFamily): string {
  return { IPv4: `10.96.9.${number}`, IPv6: `fd00:10:96::9:${number}` }[family];
}

export function crowdNodePort({ number }: CrowdService): number {
  return 30_900 + number;
}

export function crowdObjects(crowd: CrowdService): readonly RawObject[] {
  const { name, seconds, endpoints } = crowd;
  const slices = IP_FAMILIES.map((family) =>
    endpointSlice(`${name}-${family.toLowerCase()}`, {
      service: name,
      family,
      ports: [{ port: CROWD_PORT }],
      endpoints: endpoints.map((at) => ({ address: crowdEndpoint(family, at), nodeName: "node-a" })),
    }),
  );
  const fields = {
    type: "NodePort",
    clusterIPs: IP_FAMILIES.map((family) => crowdAddress(crowd, family)),
    ports: [{ port: SERVICE_PORT, targetPort: CROWD_PORT, nodePort: crowdNodePort(crowd) }],
    affinitySeconds: seconds,
  } as const;
  return [service(name, fields), ...slices];
}

/** As connections that come to them report it. */
export function crowdEnds({ endpoints }: CrowdService, family: IPFamily): readonly string[] {
  return endpoints.map((at) => `${crowdEndpoint(family, at)}:${CROWD_PORT}`);
}
