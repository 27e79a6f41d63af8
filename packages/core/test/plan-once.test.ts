import { expectReadmeExample } from "@fairlead/tooling/readme";
import { describe, expect, test } from "vitest";
import { planOnce } from "../src/index.ts";
import { SHORT_CUT } from "./objects.ts";

const service = (name: string, spec: object, labels = {}) => ({
  kind: "Service",
  metadata: { namespace: "default", name, labels },
  spec: { clusterIPs: ["10.96.0.10", "fd00:96::10"], ports: [{ port: 80 }], ...spec },
});
const slice = (name: string, family: "IPv4" | "IPv6", address: string) => ({
  kind: "EndpointSlice",
  metadata: {
    namespace: "default",
    name: `${name}-${family.toLowerCase()}`,
    labels: { "kubernetes.io/service-name": name },
  },
  addressType: family,
  ports: [{ name: "", port: 8080 }],
  endpoints: [{ addresses: [address] }],
});

describe("planOnce", () => {
  test("plans both families of raw objects, in any order", () => {
    const objects = [slice("web", "IPv6", "fd00:144::5"), service("web", {}), slice("web", "IPv4", "10.144.1.5")];
    const { plans, problems } = planOnce(objects, { semantics: SHORT_CUT });
    expect(problems).toEqual([]);
    const endpoints = [plans.IPv4, plans.IPv6].map(({ groups }) => groups.get("default/web/tcp")?.cluster);
    expect(endpoints).toMatchObject([[{ address: "10.144.1.5" }], [{ address: "fd00:144::5" }]]);
  });

  test("lists are their objects, as kubectl and the API server have them", () => {
    const { kind, ...bare } = service("web", {});
    const lists = [
      { kind: "List", items: [slice("web", "IPv4", "10.144.1.5")] },
      { kind: `${kind}List`, items: [bare] },
    ];
    const { plans, problems } = planOnce(lists, { semantics: SHORT_CUT });
    expect(problems).toEqual([]);
    expect(plans.IPv4.groups.get("default/web/tcp")?.cluster).toMatchObject([{ address: "10.144.1.5" }]);
  });

  test("what is wrong in and between objects is reported, the rest is planned", () => {
    const two = ["a", "b"].map((name, at) =>
      service(name, { clusterIPs: [`10.96.0.${at + 1}`], externalIPs: ["192.0.2.1", "bad"] }),
    );
    const { plans, problems } = planOnce([...two, { kind: "Pod" }, null, "text"], { semantics: SHORT_CUT });
    expect(plans.IPv4.groups.size).toBe(2);
    expect(problems.map(({ name, value }) => [name, value])).toEqual([
      ["a", '"bad"'],
      ["b", '"bad"'],
      ["b", expect.stringContaining("192.0.2.1")],
    ]);
  });

  test("services of another proxy are left out", () => {
    const labels = { "service.kubernetes.io/service-proxy-name": "edge" };
    const objects = [service("web", {}), service("inner", { clusterIPs: ["10.96.0.11"] }, labels)];
    const names = (serviceProxyName?: string) => {
      const options = { semantics: SHORT_CUT, ...(serviceProxyName && { serviceProxyName }) };
      return [...planOnce(objects, options).plans.IPv4.groups.keys()];
    };
    expect(names()).toEqual(["default/web/tcp"]);
    expect(names("edge")).toEqual(["default/inner/tcp"]);
  });
});

test("README example", () => expectReadmeExample(import.meta.dirname));
