import { endpointSlice, goldenScenario, node, service } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { fairlead } from "./support/run.ts";

test("CIDRs are given together or one by one", async () => {
  const plan = (...flags: readonly string[]) => {
    const node = ["--node", "node-a", "--node-address", "10.201.0.10"];
    return fairlead(["plan", "-f", "-", "--family", "ipv4", ...node, ...flags], {
      stdin: JSON.stringify(goldenScenario("01-clusterip").objects),
    });
  };
  const oneByOne = await plan("--cluster-cidr", "10.144.0.0/16", "--cluster-cidr", "fd00:144::/48");
  expect(oneByOne).toEqual(await plan("--cluster-cidr", "10.144.0.0/16,fd00:144::/48"));
  expect(oneByOne.out).toContain("! -s 10.144.0.0/16");
});

describe("of one namespace", () => {
  const web = (namespace: string, clusterIP: string, address: string, creationTimestamp: string) => {
    const of = { namespace, service: "web", family: "IPv4", ports: [{ port: 8080 }] } as const;
    const fields = { namespace, clusterIPs: [clusterIP], externalIPs: ["192.0.2.1"], ports: [{ port: 80 }] };
    const { metadata, ...rest } = service("web", fields);
    const slice = endpointSlice("web-1", { ...of, endpoints: [{ address }] });
    return [{ ...rest, metadata: { ...metadata, creationTimestamp } }, slice];
  };
  const stdin = JSON.stringify([
    ...web("shop", "10.96.0.1", "10.144.0.5", "2026-01-02"),
    ...web("other", "10.96.0.2", "10.144.0.6", "2026-01-01"),
  ]);
  const plan = (...more: readonly string[]) => {
    return fairlead(["plan", "-f", "-", "--node", "node-a", "--cluster-cidr", "10.144.0.0/16", ...more], { stdin });
  };

  test("its services only, decided alongside those that claim the same addresses", async () => {
    const { out } = await plan("-n", "shop", "-o", "summary");
    // 192.0.2.1:80 is the older service's.
    expect(out).toMatch(/^shop\/web +IPv4 +10\.96\.0\.1:80 +1 +0/m);
    expect(out).not.toContain("other/web");
    const rules = (await plan("-n", "shop")).out;
    expect(rules).toContain("10.144.0.5");
    expect(rules).not.toContain("10.144.0.6");
    const data = JSON.parse((await plan("-n", "shop", "-o", "json")).out);
    expect(data.families[0]).toMatchObject({ endpointCount: 1, groups: [{ service: "shop/web" }] });
  });

  test("without services there is no plan", async () => {
    const { code, err } = await plan("-n", "nowhere");
    expect(err).toContain("no services found in nowhere namespace: nothing was planned\n");
    expect(code).toBe(3);
  });
});

describe("in ipvs mode", () => {
  const externalIPs = ["10.201.0.11", "192.0.2.1"];
  const web = service("web", { clusterIPs: ["10.96.0.1"], externalIPs, ports: [{ port: 80 }] });
  const bound = async (...nodes: readonly object[]) => {
    const stdin = JSON.stringify([...nodes, web]);
    const given = ["plan", "-f", "-", "--node", "node-a", "--cluster-cidr", "10.144.0.0/16", "--mode", "ipvs"];
    const { out } = await fairlead(given, { stdin });
    return Array.from(out.matchAll(/addr add (\S+) dev kube-ipvs0/g), ([, address]) => address).sort();
  };

  test("an address of another Node is not put on the service device", async () => {
    const [here, there] = [
      node("node-a", { addresses: ["10.201.0.10"] }),
      node("node-b", { addresses: ["10.201.0.11"] }),
    ];
    expect(await bound(here, there)).toEqual(["10.96.0.1/32", "192.0.2.1/32"]);
    expect(await bound(here)).toEqual(["10.201.0.11/32", "10.96.0.1/32", "192.0.2.1/32"]);
  });
});
