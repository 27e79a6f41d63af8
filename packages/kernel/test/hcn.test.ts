import { describe, expect, test } from "vitest";
import { FakeHcn } from "../src/fake/index.ts";
import { createHcn, HCN_CODES, HcnError } from "../src/hcn/index.ts";
import { guidOf, guidText } from "../src/hcn/library.ts";

const NETWORK = { ID: "0e000000-0000-4000-8000-0000000000aa", Name: "cbr0", Type: "L2Bridge" };
const OTHER = { ID: "0e000000-0000-4000-8000-0000000000bb", Name: "other", Type: "Overlay" };
const POD = { ID: "e0000000-0000-4000-8000-0000000000b1", Name: "pod-a", HostComputeNetwork: NETWORK.ID };

function hcn(options: Partial<ConstructorParameters<typeof FakeHcn>[0]> = {}) {
  const fake = new FakeHcn({ networks: [NETWORK, OTHER], endpoints: [POD], ...options });
  return { fake, client: createHcn(fake) };
}

const FRONTEND = {
  HostComputeEndpoints: [POD.ID],
  FrontendVIPs: ["10.96.0.10"],
  PortMappings: [{ Protocol: 6, InternalPort: 8080, ExternalPort: 80 }],
};

describe("the client", () => {
  test("reads what there is", async () => {
    const { client } = hcn({ version: { Major: 13, Minor: 0 } });
    expect(await client.version()).toEqual({ Major: 13, Minor: 0 });
    expect(await client.network("cbr0")).toEqual(NETWORK);
    expect(await client.network("none")).toBeUndefined();
    expect(await client.endpointIds(NETWORK.ID)).toEqual([POD.ID]);
    expect(await client.endpointIds(OTHER.ID)).toEqual([]);
    expect(await client.endpoint(POD.ID)).toEqual(POD);
    expect(await client.endpointByName("pod-a")).toEqual(POD);
    expect(await client.endpointByName("none")).toBeUndefined();
    expect(await client.endpoint(OTHER.ID)).toBeUndefined();
    expect(await client.loadBalancerIds()).toEqual([]);
    expect(await client.loadBalancer(POD.ID)).toBeUndefined();
  });

  test("makes, changes and deletes objects, and closes what it opens", async () => {
    const { fake, client } = hcn();
    const endpoint = await client.createEndpoint({ HostComputeNetwork: NETWORK.ID, Flags: 1 });
    expect(await client.endpoint(endpoint)).toMatchObject({ HostComputeNetwork: NETWORK.ID, Flags: 1 });
    const id = await client.createLoadBalancer(FRONTEND);
    await client.modifyLoadBalancer(id, { ...FRONTEND, HostComputeEndpoints: [endpoint] });
    expect(await client.loadBalancer(id)).toMatchObject({ ID: id, HostComputeEndpoints: [endpoint] });
    await client.deleteLoadBalancer(id);
    await client.deleteEndpoint(endpoint);
    expect([fake.objects.LoadBalancer.size, fake.objects.Endpoint.size]).toEqual([0, 1]);
    const count = (name: RegExp) => fake.calls.filter(({ call, code }) => name.test(call) && code === undefined).length;
    expect(count(/^HcnClose/)).toBe(count(/^Hcn(?:Open|Create)/));
  });

  test("what was made is made, also where it cannot be closed", async () => {
    const { fake, client } = hcn();
    for (const kind of ["Network", "Endpoint", "LoadBalancer"]) fake.fail(`HcnClose${kind}`, 0x80004005, 5);
    const endpoint = await client.createEndpoint({ HostComputeNetwork: NETWORK.ID, Flags: 1 });
    const id = await client.createLoadBalancer(FRONTEND);
    await client.modifyLoadBalancer(id, { ...FRONTEND, HostComputeEndpoints: [endpoint] });
    expect(await client.loadBalancer(id)).toMatchObject({ HostComputeEndpoints: [endpoint] });
  });

  test("what is gone when it is to be deleted, is deleted", async () => {
    const { client } = hcn();
    await client.deleteLoadBalancer("1b000000-0000-4000-8000-000000000001");
    await client.deleteEndpoint("e0000000-0000-4000-8000-000000000001");
  });

  test("a refusal names the function, the code and what it stands for", async () => {
    const { fake, client } = hcn();
    await client.createLoadBalancer(FRONTEND);
    const error = await client.createLoadBalancer(FRONTEND).catch((one: unknown) => one);
    expect(error).toMatchObject({ name: "HcnError", call: "HcnCreateLoadBalancer", code: HCN_CODES.portExists });
    expect(String(error)).toBe("HcnError: HcnCreateLoadBalancer: 0x803b0013: another load balancer has this frontend");
    fake.fail("HcnQueryEndpointProperties", 0x80004005);
    await expect(client.endpoint(POD.ID)).rejects.toThrow("HcnQueryEndpointProperties: 0x80004005");
    fake.fail("HNSCall", HCN_CODES.notRunning);
    await expect(client.version()).rejects.toThrow("the Host Network Service (hns) is not running");
  });

  test("an error of Windows is negative", () => {
    expect(new HcnError("HcnOpenNetwork", -2143617023, "no network").message).toBe(
      "HcnOpenNetwork: 0x803b0001: there is no such network: no network",
    );
  });
});

describe("HCN in memory", () => {
  test("refuses endpoints that are not there, and to modify before HNS 15.5", async () => {
    const { client } = hcn({ version: { Major: 15, Minor: 4 } });
    const id = await client.createLoadBalancer(FRONTEND);
    await expect(client.modifyLoadBalancer(id, FRONTEND)).rejects.toMatchObject({ code: HCN_CODES.notImplemented });
    const unknown = { ...FRONTEND, FrontendVIPs: ["10.96.0.11"], HostComputeEndpoints: [OTHER.ID] };
    await expect(client.createLoadBalancer(unknown)).rejects.toMatchObject({ code: HCN_CODES.endpointNotFound });
  });

  test("has a frontend once for each family", async () => {
    const { client } = hcn();
    const { FrontendVIPs: _, ...nodePort } = FRONTEND;
    await client.createLoadBalancer(nodePort);
    await client.createLoadBalancer({ ...nodePort, Flags: 2 });
    await expect(client.createLoadBalancer({ ...nodePort, Flags: 3 })).rejects.toMatchObject({
      code: HCN_CODES.portExists,
    });
  });
});

test.each(["0e0000aa-0102-4000-8000-0000000000aa", "ffffffff-ffff-ffff-ffff-ffffffffffff"])("GUID %s", (text) => {
  expect(guidText(guidOf(text))).toBe(text);
  expect(guidText(guidOf(`{${text.toUpperCase()}}`))).toBe(text);
});

test("what is no GUID is refused", () => {
  expect(() => guidOf("0e0000aa-0102")).toThrow('"0e0000aa-0102" is no GUID');
});
