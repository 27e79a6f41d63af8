import { describe, expect, test } from "vitest";
import { answer, DEMO_NODE, DEMO_OBJECTS, type Question } from "../src/page/tracer/answer.ts";

const demo = { text: DEMO_OBJECTS, node: DEMO_NODE, from: "192.0.2.9", to: "10.96.0.10:80", protocol: "tcp" } as const;
const ends = async (question: Question) =>
  (await answer(question)).ends.map(({ share, text }) => `${Math.round(share * 100)} % ${text}`).sort();

describe.each(["iptables", "nftables"] as const)("the demo in %s mode", (origin) => {
  test.each([
    ["a client outside", {}, ["10.144.1.5", "10.144.2.6", "10.144.2.7"], ", masqueraded"],
    ["a pod of the node", { from: "10.144.1.20" }, ["10.144.1.5", "10.144.2.6", "10.144.2.7"], ""],
    ["a node port", { to: "10.201.0.10:30080" }, ["10.144.1.5", "10.144.2.6", "10.144.2.7"], ", masqueraded"],
  ])("%s is spread over the endpoints", async (_, asked, addresses, how) => {
    expect(await ends({ ...demo, origin, ...asked })).toEqual(addresses.map((one) => `33 % to ${one}:8080${how}`));
  });

  test("a service without endpoints refuses", async () => {
    expect(await ends({ ...demo, origin, to: "10.96.0.11:80" })).toEqual([expect.stringMatching(/^100 % reject/)]);
  });

  test("its rules, pasted, give the same", async () => {
    const { rules } = await answer({ ...demo, origin });
    expect(await ends({ ...demo, origin: "pasted", text: rules })).toEqual(await ends({ ...demo, origin }));
  });
});

test("an IPv6 packet, and a List instead of documents", async () => {
  const metadata = { namespace: "a", name: "six" };
  const items = [
    { kind: "Service", metadata, spec: { clusterIP: "fd00:10:96::1", ports: [{ port: 80 }] } },
    {
      kind: "EndpointSlice",
      metadata: { ...metadata, labels: { "kubernetes.io/service-name": "six" } },
      addressType: "IPv6",
      ports: [{ name: "", port: 8080 }],
      endpoints: [{ addresses: ["fd00:10:144::5"] }],
    },
  ];
  const text = JSON.stringify({ kind: "List", items });
  const node = { name: "node-a", addresses: ["fd00::1"], podCIDRs: ["fd00:10:144::/64"] };
  const six = { ...demo, text, node, from: "2001:db8::9", to: "[fd00:10:96::1]:80", origin: "iptables" } as const;
  expect(await ends(six)).toEqual(["100 % to [fd00:10:144::5]:8080, masqueraded"]);
});

test("what cannot be decided is shown both ways, with its condition", async () => {
  const text = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -m limit --limit 6/min -j DROP\nCOMMIT\n";
  const { ends } = await answer({ ...demo, origin: "pasted", text, to: "10.201.0.10:22" });
  expect(ends.map(({ text: end, walks }) => [end, walks[0]?.provided.map((one) => one.slice(0, 22))])).toEqual([
    ["drop", ["filter INPUT 1 matches"]],
    ["to 10.201.0.10:22", ["filter INPUT 1 does no"]],
  ]);
});

test.each([
  ["objects that are not YAML", { text: "a: [" }, "Flow sequence"],
  ["a CIDR that is not one", { node: { ...DEMO_NODE, podCIDRs: ["10.144.1.0"] } }, "CIDRs of pods: 10.144.1.0 must be"],
  ["a source that is not an address", { from: "web" }, "must be SOURCE→ADDRESS:PORT"],
  ["rules that are not rules", { origin: "pasted", text: "hello" }, "line 1"],
] as const)("%s: says so", async (_, asked, problem) => {
  await expect(answer({ ...demo, origin: "iptables", ...asked })).rejects.toThrow(problem);
});

test("a wrong object is skipped and reported", async () => {
  const text = DEMO_OBJECTS.replace("10.144.2.7", "127.0.0.1");
  const { ends: found, problems } = await answer({ ...demo, origin: "iptables", text });
  expect(found).toHaveLength(2);
  expect(problems).toEqual([expect.stringContaining("127.0.0.1")]);
});
