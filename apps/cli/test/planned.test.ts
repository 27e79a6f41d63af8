import { hostname } from "node:os";
import { type EndpointFields, endpointSlice, type ServiceFields, service, node as testNode } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { demandThisHost } from "../src/inputs/planned.ts";
import { fairlead } from "./support/run.ts";

const served = (name: string, more: Partial<ServiceFields>, endpoint: Partial<EndpointFields> = {}) => {
  const of = { namespace: "shop", ports: [{ port: 80 }] };
  const endpoints = [{ address: "10.144.1.5", nodeName: "node-a", ...endpoint }];
  return [
    service(name, { ...of, clusterIPs: [`10.96.0.${name.length}`], ...more }),
    endpointSlice(`${name}-1`, { ...of, service: name, family: "IPv4", endpoints }),
  ];
};
const node = (name: string) => testNode(name, { zone: `zone-${name}`, addresses: ["10.201.0.10"] });
const hinted = served("web", {}, { zoneHints: ["zone-node-a"] });
const ports = [{ port: 80, nodePort: 30080 }];
const local = served("lb", { type: "NodePort", externalTrafficPolicy: "Local", ports });
const ask = (objects: readonly object[], ...line: readonly string[]) =>
  fairlead([...line, "-f", "-", "--cluster-cidr", "10.144.0.0/16"], { stdin: JSON.stringify(objects) });

test.each([
  ["plan", []],
  ["explain", ["shop/web"]],
])("%s: a node that the manifests do not have is an error that lists those they have", async (command, args) => {
  const objects = [...hinted, node("node-b"), node("node-a")];
  const { code, out, err } = await ask(objects, command, ...args, "--node", "node-x");
  expect({ code, out }).toEqual({ code: 3, out: "" });
  expect(err).toBe("--node=node-x: there is no such Node; there are: node-a, node-b; did you mean node-a or node-b?\n");
  expect(await ask(objects, command, ...args, "--node", "node-a")).toMatchObject({ code: 0, err: "" });
});

test("without --node on a host that is not a Node, the error lists the Nodes", async () => {
  const { code, err } = await ask([...hinted, node("node-a")], "plan");
  expect(err).toMatch(/^no Node has this host's name: give --node NODE; there are: node-a$/m);
  expect(code).toBe(3);
});

test.each([
  ["verify", "--on NODE or --all-nodes"],
  ["flows", "--on NODE"],
])("%s looks at a kernel, so that another flag is right", async (command, flags) => {
  const { code, err } = await fairlead([command, "-f", "-", "--cluster-cidr", "10.144.0.0/16"], {
    stdin: JSON.stringify([...hinted, node("node-a")]),
    stateHere: async () => ({ addresses: [], problems: {} }),
  });
  expect(err).toContain(`no Node has this host's name: give ${flags}; there are: node-a\n`);
  expect(code).toBe(3);
});

test("ownership is the same on every node", async () => {
  expect(await ask([...hinted, node("node-a")], "ownership")).toMatchObject({ code: 0, err: "" });
});

test("hints of zones without the own Node are said to count for nothing", async () => {
  const { code, err } = await ask(hinted, "plan", "--node", "node-a", "-o", "summary");
  expect(err).toBe(
    "no Node object of node-a is there: its zone is not known, and the zone hints of 1 service count for nothing (shop/web)\n",
  );
  expect(code).toBe(0);
});

test("a node that nothing knows is said where its own endpoints matter", async () => {
  const { err } = await ask(local, "plan", "--node", "node-x", "-o", "summary");
  expect(err).toBe(
    "no Node object of node-x is there, and no endpoint is on it: 1 service with a Local policy is dropped there (shop/lb); endpoints are on: node-a\n",
  );
  expect((await ask(local, "plan", "--node", "node-a", "-o", "summary")).err).toBe("");
});

const NODE = { addresses: ["10.201.0.10", "fd00:201::10"] };

test("a node without an address of this host is not looked at here", () => {
  expect(() => demandThisHost({ node: "node-b" }, ["127.0.0.1", "192.0.2.7"], NODE)).toThrow(
    "--node=node-b: this host is not that Node (it does not have 10.201.0.10 or fd00:201::10); look at it with --on node-b",
  );
});

test.each([
  ["it has one of the Node's addresses", "node-b", NODE],
  ["it has its name", hostname().toUpperCase(), { addresses: ["198.51.100.1"] }],
  ["no node is named", undefined, { addresses: ["198.51.100.1"] }],
  ["nothing is known of the Node", "node-b", undefined],
])("this host is taken where %s", (_why, node, known) => {
  expect(() => demandThisHost({ node }, ["127.0.0.1", "10.201.0.10"], known)).not.toThrow();
});
