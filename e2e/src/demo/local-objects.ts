import { endpointSlice, type RawObject } from "@fairlead/testkit";

/**
 * The same objects with pods on ports of this machine: each endpoint whose address is known becomes a slice of its own
 * with its port. The others, such as the other network's, stay where nobody here can reach them.
 *
 * @param ports of 127.0.0.1, by the address that a pod would have
 */
export function localObjects(objects: readonly RawObject[], ports: ReadonlyMap<string, number>): readonly RawObject[] {
  return objects.flatMap((object) => (object.kind === "EndpointSlice" ? localSlices(object, ports) : [object]));
}

function localSlices(slice: RawObject, ports: ReadonlyMap<string, number>): readonly RawObject[] {
  const addresses = addressesOf(slice);
  if (!addresses.some((address) => ports.has(address))) return [slice];
  const service = serviceOf(slice);
  return addresses.flatMap((address) => {
    const port = ports.get(address);
    if (port === undefined) return [];
    const endpoints = [{ address: "127.0.0.1" }];
    return [endpointSlice(`${service}-${port}`, { service, family: "IPv4", ports: [{ port }], endpoints })];
  });
}

function addressesOf({ endpoints }: RawObject): readonly string[] {
  if (!Array.isArray(endpoints)) return [];
  return endpoints.flatMap(({ addresses }: { addresses?: readonly string[] }) => addresses ?? []);
}

function serviceOf({ metadata }: RawObject): string {
  return metadata.labels?.["kubernetes.io/service-name"] ?? "";
}
