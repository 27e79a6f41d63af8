import { endpointSlice, node, service } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { fileOf } from "./support/files.ts";
import { fairlead } from "./support/run.ts";

const objects = [
  service("web", {
    namespace: "shop",
    type: "NodePort",
    clusterIPs: ["10.96.0.10"],
    ports: [{ name: "http", port: 80, nodePort: 30_080 }],
  }),
  service("web-admin", {
    namespace: "shop",
    clusterIPs: ["10.96.0.11"],
    ports: [
      { name: "http", port: 80 },
      { name: "metrics", port: 9090 },
    ],
  }),
  ...["web", "web-admin"].map((name) =>
    endpointSlice(`${name}-1`, {
      namespace: "shop",
      service: name,
      family: "IPv4",
      ports: [{ name: "http", port: 8080 }],
      endpoints: [{ address: "10.144.1.5", nodeName: "node-a" }],
    }),
  ),
  node("node-a", { addresses: ["10.201.0.10"] }),
  node("node-b", { addresses: ["10.201.0.11"] }),
];

const agent = ["-f", fileOf(objects, "services.json"), "--node", "node-a", "--cluster-cidr", "10.144.0.0/16"];

const explain = (...args: readonly string[]) => fairlead(["explain", ...args, ...agent]);

describe("explain names a service as kubectl does", () => {
  test.each([
    ["shop/web"],
    ["shop/web:http"],
    ["web", "-n", "shop"],
    ["svc/web", "--namespace", "shop"],
    ["service/web:80", "-n", "shop"],
    ["10.96.0.10"],
    [":30080"],
    [":30080/tcp"],
  ])("%s", async (...args) => {
    const { out, err, code } = await explain(...args);
    expect({ err, code }).toEqual({ err: "", code: 0 });
    expect(out).toMatch(/^shop\/web on node-a, iptables mode\n/);
    expect(out).not.toContain("web-admin");
  });

  test("a pod's address finds its services", async () => {
    const { out, code } = await explain("10.144.1.5");
    expect(out.match(/^\S+ on node-a/gm)).toEqual(["shop/web on node-a", "shop/web-admin on node-a"]);
    const { out: json } = await explain("10.144.1.5", "-o", "json");
    expect(JSON.parse(json).map(({ service: key }: { service: string }) => key)).toEqual([
      "shop/web",
      "shop/web-admin",
    ]);
    expect(code).toBe(0);
  });

  test.each([
    [["web"], "; did you mean shop/web?"],
    [["shop/wep"], "; did you mean shop/web?"],
    [["db"], ""],
  ])("%j is not a target, and a similar one is named", async (args, suggestion) => {
    const { err, code } = await explain(...args);
    expect(err).toBe(
      `${args[0]}: there is no such Service with a ClusterIP (headless and ExternalName services are not proxied)${suggestion}\n`,
    );
    expect(code).toBe(3);
  });

  test.each([
    ["10.144.9.9", "no service and no endpoint has that address"],
    [":30099", "no service has that node port"],
  ])("%s belongs to no service", async (target, why) => {
    expect(await explain(target)).toEqual({ code: 3, out: "", err: `${target}: ${why}\n` });
  });

  test("a node that there is not, and those that there are", async () => {
    const { err, code } = await fairlead(["explain", "shop/web", ...agent, "--node", "nod-b"]);
    expect(err).toBe("--node=nod-b: there is no such Node; there are: node-a, node-b; did you mean node-b?\n");
    expect(code).toBe(3);
  });
});

describe("trace over what an agent would write for manifests", () => {
  const trace = (to: string, ...more: readonly string[]) =>
    fairlead(["trace", "--from", "10.144.2.7", "--to", to, ...agent, ...more]);

  test.each(["shop/web", "shop/web:http", "10.96.0.10", "10.96.0.10:80", ":30080", "shop/web-admin:http"])(
    "to %s",
    async (to) => {
      const { out, err, code } = await trace(to);
      expect({ err, code }).toEqual({ err: "", code: 0 });
      expect(out).toMatch(/^100 % → 10\.144\.1\.5:8080/m);
    },
  );

  test.each(["ipvs", "nftables"])("in %s mode", async (mode) => {
    const { out, code } = await trace("svc/web", "-n", "shop", "--mode", mode, "-o", "json");
    const ends: readonly { readonly destination: unknown }[] = JSON.parse(out).outcomes;
    expect(new Set(ends.map(({ destination }) => JSON.stringify(destination)))).toEqual(
      new Set(['{"address":"10.144.1.5","port":8080}']),
    );
    expect(code).toBe(0);
  });

  test.each([
    ["shop/web-admin", "which port? There are: http (80/TCP), metrics (9090/TCP)"],
    ["shop/web:htttp", "which port? There are: http (80/TCP)"],
    ["shop/wep", "there is no such service with a ClusterIP; did you mean shop/web?"],
    ["10.144.1.5", "that is an address of shop/web, shop/web-admin: name one of them, or a port"],
  ])("to %s: an error that says why", async (to, why) => {
    expect(await trace(to)).toEqual({ code: 3, out: "", err: `--to=${to}: ${why}\n` });
  });
});

test("-n: only services of that namespace", async () => {
  const owners = async (namespace: string) =>
    JSON.parse((await fairlead(["ownership", ...agent, "-n", namespace, "-o", "json"])).out).services.length;
  expect(await owners("shop")).toBe(2);
  expect(await owners("sho")).toBe(0);
});
