import { endpointSlice, kubernetesService, node, type RawObject, service, serviceCIDR } from "@fairlead/testkit";

/** What clients ask. */
export interface CountedService {
  readonly address: string;
  /** Of TCP and UDP. */
  readonly port: number;
  readonly endpoints: readonly string[];
}

/** How much there is alongside it. */
export interface Size {
  readonly services: number;
  /** Of each; the service that is counted has ten. */
  readonly endpoints: number;
}

export const COUNTED: CountedService = {
  address: "10.96.0.10",
  port: 53,
  endpoints: Array.from({ length: 10 }, (_, at) => `10.144.200.${at + 1}`),
};

type Annotations = Readonly<Record<string, string>>;

const NODE_ADDRESS = "10.201.0.10";

/**
 * What an API server has: the node, services of one TCP port, and the one that is counted.
 *
 * @param annotations of the service that is counted
 */
export function clusterOf({ services, endpoints }: Size, annotations: Annotations = {}): readonly RawObject[] {
  const others = Array.from({ length: services - 1 }, (_, index) => {
    const addresses = Array.from({ length: endpoints }, (_, at) => inTen(128, index * endpoints + at));
    return oneOf(`web-${index}`, inTen(100, index), [{ name: "http", port: 80, protocol: "TCP" }], addresses);
  });
  return [
    node("node-a", { addresses: [NODE_ADDRESS] }),
    serviceCIDR("kubernetes", ["10.96.0.0/12"]),
    ...kubernetesService(),
    ...countedObjects(COUNTED.endpoints, annotations),
    ...others.flat(),
  ];
}

export function countedObjects(endpoints: readonly string[], annotations: Annotations = {}): readonly RawObject[] {
  const { address, port } = COUNTED;
  const ports = (["TCP", "UDP"] as const).map((protocol) => ({ name: protocol.toLowerCase(), port, protocol }));
  return oneOf("counted", address, ports, endpoints, annotations);
}

function oneOf(
  name: string,
  clusterIP: string,
  ports: readonly { readonly name: string; readonly port: number; readonly protocol: "TCP" | "UDP" }[],
  addresses: readonly string[],
  annotations: Annotations = {},
): readonly RawObject[] {
  const endpoints = addresses.map((address) => ({ address, nodeName: "node-b" }));
  return [
    service(name, { clusterIPs: [clusterIP], ports, annotations }),
    endpointSlice(`${name}-0`, { service: name, family: "IPv4", ports, endpoints }),
  ];
}

/** The address of this number of 10.0.0.0/8, from 10.SECOND.1.0 on. */
function inTen(second: number, number: number): string {
  const at = number + 256;
  return `10.${second + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`;
}
