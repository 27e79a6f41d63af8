import { endpointSlice, type RawObject, service } from "@fairlead/testkit";

/** A Service of one port, and its EndpointSlice. */
export function web(
  name: string,
  clusterIP: string,
  addresses: readonly string[],
  annotations: Readonly<Record<string, string>> = {},
): readonly RawObject[] {
  const ports = [{ port: 80 }];
  const endpoints = addresses.map((address) => ({ address, nodeName: "node-b" }));
  return [
    service(name, { clusterIPs: [clusterIP], ports, annotations }),
    endpointSlice(`${name}-1`, { service: name, family: "IPv4", ports, endpoints }),
  ];
}
