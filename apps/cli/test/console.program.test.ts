import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { endpointSlice } from "@fairlead/testkit";
import { beforeAll, describe, expect, test } from "vitest";
import { fileOf, ownFolder } from "./support/files.ts";
import { openedConsole, printedAddress } from "./support/opened-console.ts";
import { CLUSTER, iptables, nodePrograms, stdin } from "./support/recorded.ts";
import { fairlead, programs, started } from "./support/run.ts";

const page = await readFile(join(import.meta.dirname, "..", "..", "..", "docs", "tools.md"), "utf8");
const [, manifests = ""] = /^```yaml\n(.*?)^```/ms.exec(page) ?? [];
const NETWORKS = ["--cluster-cidr", "10.144.0.0/16", "--exclude-cluster-cidr", "10.244.0.0/16"];

const file = fileOf(manifests, "services.yaml");

const opened = (signal: AbortSignal, ...args: readonly string[]) =>
  openedConsole(signal, ["-f", file, "--node", "node-a", ...NETWORKS, ...args]);

test("it runs until it is interrupted, and says so", async ({ signal }) => {
  const running = await opened(signal, "--no-open");
  const { code, out, err } = await running.close();
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/.*\nGood for one browser, once; Ctrl-C ends it\.\n$/);
  expect(running.calls).toEqual([]);
});

test("networks' objects among the manifests are followed: another network's Subnet, and the nodes as before", async ({
  signal,
}) => {
  const node = "\n---\napiVersion: v1\nkind: Node\nmetadata: {name: node-z}\n";
  const subnet =
    "---\napiVersion: kubeovn.io/v1\nkind: Subnet\nmetadata: {name: blue}\nspec: {cidrBlock: 10.144.2.0/24}\n";
  // It lies in the pods' own CIDR.
  const consent =
    "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: fairlead-networks, namespace: kube-system}\n" +
    'data: {accepted: "- {cidr: 10.144.2.0/24, by: alice}"}\n';
  await writeFile(file, manifests + node);
  const flags = ["exclude-cidrs-from=kube-ovn-subnets", "excluded-frontends=excluded-clients"];
  const running = await opened(signal, "--no-open", ...flags.flatMap((flag) => ["--agent-flag", flag]));
  await running.eventsUntil(/"node":"node-z".*"service":"shop\/web","owners":\{"IPv4":"ours"/s);
  await writeFile(`${file}.next`, manifests + node + subnet + consent);
  await rename(`${file}.next`, file);
  await running.eventsUntil(/"service":"shop\/web","owners":\{"IPv4":"mixed"/);
  const { learnedFrom } = await running.get("api/service?target=shop/web");
  expect(learnedFrom).toEqual([{ cidr: "10.144.2.0/24", objects: ["Subnet/blue"], since: expect.any(String) }]);
  const { code, err } = await running.close();
  expect({ code, err }).toEqual({ code: 0, err: "" });
  await writeFile(file, manifests);
});

describe("trace", () => {
  test("through the plan, where there is no kernel: as fairlead trace has it", async ({ signal }) => {
    const running = await opened(signal, "--no-open");
    const { source, trace } = await running.get("api/trace?from=pod&to=10.96.0.10:80");
    expect(source).toBe("plan of node-a");
    expect(trace.outcomes.map((one: { destination: { address: string } }) => one.destination.address)).toEqual([
      "10.144.1.5",
      "10.144.2.6",
    ]);
    expect(trace.outcomes[0].visits[0]).toMatchObject({ table: "nat", chain: "PREROUTING", text: expect.any(String) });
    expect(await running.get("api/trace?from=pod&to=shop/web")).toMatchObject({ trace: { outcomes: trace.outcomes } });
    expect(await running.get("api/trace?to=odd")).toEqual({
      error: "--to=odd: there is no such service with a ClusterIP",
    });
    expect(await running.get("api/trace?to=a%20b")).toEqual({
      error: expect.stringMatching(/^--to=a b: must be ADDRESS/),
    });
    await running.close();
  });
});

describe("what if", () => {
  test("a CIDR were another network's", async ({ signal }) => {
    const running = await opened(signal, "--no-open");
    const { services, families } = await running.post("api/what-if", { cidr: "10.144.2.0/24" });
    expect(services).toEqual(["shop/web"]);
    const [{ traffic }] = families;
    expect(traffic.changes).toContainEqual({
      destination: "tcp 10.96.0.10:80",
      from: expect.arrayContaining([expect.any(String)]),
      before: { ways: { "10.144.1.5:8080": 0.5, "10.144.2.6:8080": 0.5 } },
      after: expect.anything(),
    });
    await running.close();
  });

  test("manifests came: only what they change is compared, and nothing is applied", async ({ signal }) => {
    const running = await opened(signal, "--no-open");
    const of = { namespace: "shop", service: "web", family: "IPv4", ports: [{ name: "http", port: 8080 }] } as const;
    const slice = endpointSlice("web-1", { ...of, endpoints: [{ address: "10.144.1.5", nodeName: "node-a" }] });
    const { services, families } = await running.post("api/what-if", { manifests: JSON.stringify(slice) });
    expect(services).toEqual(["shop/web"]);
    expect(families[0].traffic.changes.length).toBeGreaterThan(0);
    expect(families[1].traffic.changes).toEqual([]);
    const { explanation } = await running.get("api/service?target=shop/web");
    expect(explanation.families[0].ports[0].endpoints).toHaveLength(3);
    await running.close();
  });

  test.for<[object, string | RegExp]>([
    [{}, "give manifests, a configuration or a CIDR"],
    [{ cidr: "10.0.0.0/33" }, /CIDR 10\.0\.0\.0\/33: /],
    [{ manifests: "kind: [" }, /^manifests/],
    [{ manifests: "kind: ConfigMap\napiVersion: v1\nmetadata: { name: x }" }, /neither a Service nor an EndpointSlice/],
  ])("%j is refused", async ([change, message], { signal }) => {
    const running = await opened(signal, "--no-open");
    expect((await running.post("api/what-if", change)).error).toMatch(message);
    await running.close();
  });
});

test.each([
  [["--port", "70000"], "--port=70000: must be a number from 0 (any that is free) to 65535"],
  [["--port", "x"], "--port=x: must be a number"],
])("%j is refused", async (args, message) => {
  const { code, err } = await fairlead(["console", "-f", file, ...args]);
  expect(code).toBe(2);
  expect(err).toContain(message);
});

test.for<[string, string]>([
  ["api/flows", "node-a: manifests have no kernel; add --live"],
  ["api/doctor?node=node-a", "node-a: manifests have no kernel; add --live"],
])("%s of manifests is an error", async ([path, error], { signal }) => {
  const running = await opened(signal, "--no-open");
  expect(await running.get(path)).toEqual({ error });
  expect(running.calls).toEqual([]);
  await running.close();
});

test("--live looks at this host only", async ({ signal }) => {
  const running = await opened(signal, "--no-open", "--live");
  expect(await running.get("api/flows?node=node-b")).toEqual({ error: "node-b: --live looks at this host only" });
  await running.close();
});

test("--live without manifests is refused", async () => {
  const { code, err } = await fairlead(["console", "--live"]);
  expect(code).toBe(2);
  expect(err).toContain("--live: is for manifests");
});

test("a browser is opened by a file of the user's own, not by an address that others could see", async ({ signal }) => {
  const running = await opened(signal);
  const { err } = await running.close();
  expect(err).toMatch(/^no browser could be started \(.*\): open the address yourself\n$/);
  expect(running.calls).toHaveLength(1);
  expect(JSON.stringify(running.calls)).not.toContain("token");
});

const AGENT = ["--mode", "iptables", ...CLUSTER];
const archive = join(ownFolder(), "dump.tar.gz");

beforeAll(async () => {
  const runner = programs(nodePrograms(iptables));
  const argv = ["sysdump", "--live", "-f", "-", ...AGENT, "--node-timeout", "600", "--output-file", archive];
  await fairlead(argv, { runner, stdin });
});

async function asked(signal: AbortSignal, path: string): Promise<unknown> {
  await using console = started(signal, ["console", "--no-open", "--sysdump", archive]);
  const { base, token } = await printedAddress(console);
  const init = { method: "POST", body: JSON.stringify({ token }), headers: { origin: new URL(base).origin } };
  const cookie = (await fetch(`${base}session`, init)).headers.get("set-cookie")?.split(";", 1)[0] ?? "";
  return (await fetch(`${base}${path}`, { headers: { cookie } })).json();
}

test("the page traces through the archive's rules", async ({ signal }) => {
  const trace = await asked(signal, "api/trace?from=198.51.100.7&to=203.0.113.10:80");
  expect(trace).toMatchObject({ source: "archive of node-a", command: expect.stringContaining("--sysdump") });
  expect(JSON.stringify(trace)).toContain("10.144.1.5");
});

test.for(["api/flows", "api/doctor"])(
  "%s does not answer for this machine in the place of the node",
  async (path, { signal }) => {
    expect(JSON.stringify(await asked(signal, path))).toContain("an archive has no connections and no processes");
  },
);
