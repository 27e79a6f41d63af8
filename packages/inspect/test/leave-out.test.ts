import { socketText } from "@fairlead/base";
import { endpointSlice, kubernetesService, type RawObject, service } from "@fairlead/testkit";
import { runs } from "@fairlead/tooling/runs";
import { createManifestsSnapshot } from "@fairlead/watch";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { leaveOutOthers, parseTarget, readCluster, relatedServices } from "../src/index.ts";

const NAMES = ["a", "b", "web", "web-1", "db"];
const ADDRESSES = ["10.96.0.1", "10.96.0.10", "192.0.2.9", "fd00::10", "fd00::1"];
/** The same addresses as people write them. */
const SPELLINGS: Readonly<Record<string, readonly string[]>> = {
  "10.96.0.1": ["10.96.0.1", "010.96.0.01", "::ffff:10.96.0.1", "::FFFF:a60:1"],
  "10.96.0.10": ["10.96.0.10", "10.096.0.10"],
  "192.0.2.9": ["192.0.2.9", "192.00.2.9"],
  "fd00::10": ["fd00::10", "FD00::10", "fd00:0:0::0010", "fd00:0:0:0:0:0:0:10"],
  "fd00::1": ["fd00::1", "fd00::0:1"],
};
const NODE_PORTS = [80, 30_080, 30_081];

const address = fc.constantFrom(...ADDRESSES).chain((one) => fc.constantFrom(...(SPELLINGS[one] ?? [one])));
const workload = fc
  .record({
    name: fc.constantFrom(...NAMES),
    namespace: fc.constantFrom("default", "shop"),
    clusterIP: address,
    externalIPs: fc.array(address, { maxLength: 2 }),
    nodePort: fc.option(fc.constantFrom(...NODE_PORTS), { nil: undefined }),
    note: fc.constantFrom("", 'quotes " and { brackets ]', "ü", "a tab\t"),
  })
  .map(({ name, namespace, clusterIP, externalIPs, nodePort, note }): RawObject[] => {
    const port = nodePort === undefined ? { port: 80 } : { port: 80, nodePort };
    const type = nodePort === undefined ? "ClusterIP" : "NodePort";
    const made = service(name, { namespace, type, clusterIPs: [clusterIP], externalIPs, ports: [port] });
    return [
      { ...made, metadata: { name, namespace, annotations: { note } } },
      endpointSlice(`${name}-1`, {
        namespace,
        service: name,
        family: "IPv4",
        ports: [{ port: 80 }],
        endpoints: [{ address: "10.144.1.5" }],
      }),
    ];
  });
const NODE = { apiVersion: "v1", kind: "Node", metadata: { name: "node-a" }, spec: { podCIDR: "10.144.0.0/24" } };
const objects = fc
  .array(workload, { maxLength: 6 })
  .chain((all) => fc.shuffledSubarray([...kubernetesService(), NODE, ...all.flat()], { minLength: 1 }));

const wrapped = (kind: string) => (all: readonly RawObject[]) => ({ kind, items: all, apiVersion: "v1" });
const document = fc.constantFrom<((all: readonly RawObject[]) => unknown)[]>((all) => all, wrapped("List"));
const text = fc
  .record({ objects, document, indent: fc.constantFrom(0, 1, 2), escaped: fc.boolean() })
  .map(({ objects, document, indent, escaped }) => {
    const plain = JSON.stringify(document(objects), null, indent);
    return escaped ? plain.replaceAll("web", "\\u0077eb").replaceAll("30080", "3.008e4") : plain;
  });
const target = fc
  .oneof(
    fc.constantFrom(...NAMES, "shop/web", "gone"),
    fc.tuple(fc.constantFrom(...ADDRESSES), fc.constantFrom(80, 30_080)).map(([to, port]) => {
      return socketText(to, port);
    }),
  )
  .map((text) => parseTarget(text));

const encode = (all: readonly string[]) => all.map((one) => Buffer.from(one));
const never = new AbortController().signal;

/** What is known of a target's services once all has been read. */
async function readFrom(content: Uint8Array, about: ReturnType<typeof parseTarget>) {
  const source = createManifestsSnapshot({ paths: ["-"], nodeName: "node-a", readStandardInput: async () => content });
  const { state, node: own } = await readCluster(source, never);
  const related = [...relatedServices(state, about)].sort();
  return { own, related: related.map((key) => [key, state.service(key), [...state.slices(key)]]) };
}

describe("leaveOutOthers", () => {
  test("what is left says the same of the target", async () => {
    await fc.assert(
      fc.asyncProperty(text, target, async (all, about) => {
        const [whole = Buffer.from("")] = encode([all]);
        const [left = whole] = leaveOutOthers([whole], about);
        expect(await readFrom(left, about)).toEqual(await readFrom(whole, about));
      }),
      { numRuns: runs(175) },
    );
  });

  test("what has nothing to do with it goes", () => {
    const all = ["a", "b", "db"].flatMap((name, at) => [
      service(name, { clusterIPs: [`10.96.0.${at + 1}`], ports: [{ port: 80 }] }),
      endpointSlice(`${name}-1`, { service: name, family: "IPv4", ports: [{ port: 80 }], endpoints: [] }),
    ]);
    for (const document of [all, { apiVersion: "v1", items: all, kind: "List", metadata: {} }]) {
      const [left] = leaveOutOthers(encode([JSON.stringify(document, null, 2)]), parseTarget("10.96.0.2:80"));
      const read = JSON.parse(String(left));
      expect(document === all ? read : read.items).toEqual(all.slice(2, 4));
    }
  });

  test("a service of another file that has the address stays", () => {
    const one = (name: string) => service(name, { clusterIPs: ["10.96.0.1"], ports: [{ port: 80 }] });
    const left = leaveOutOthers(encode([JSON.stringify([one("a")]), JSON.stringify([one("b")])]), parseTarget("a"));
    expect(left.map((text) => JSON.parse(String(text)))).toEqual([[one("a")], [one("b")]]);
  });

  test.each([
    ["YAML", "- kind: Service"],
    ["YAML that looks like JSON", '[{"kind": "Service", "spec": {"clusterIP": 10.96.0.2}}]'],
    ["one object", JSON.stringify(service("b", { clusterIPs: ["10.96.0.2"], ports: [{ port: 80 }] }))],
    ["a text that ends too early", '[{"kind": "Service"'],
    ["a quote too much", '[{"kind": "Service""}]'],
    ["two documents", "[{}] [{}]"],
    ["wrong commas around an object that is asked for", '[{"metadata": {"name": "a"}, , "kind": "Service"}]'],
  ])("%s is read whole", (_what, whole) => {
    const contents = encode([whole]);
    expect(leaveOutOthers(contents, parseTarget("default/a"))).toBe(contents);
  });
});
