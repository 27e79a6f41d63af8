import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endpointSlice, goldenScenarios, type RawObject, service } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Output } from "./support/output.ts";
import { fairlead } from "./support/run.ts";

const CIDRS = ["--cluster-cidr", "10.144.0.0/16", "--exclude-cluster-cidr", "10.244.0.0/16"];

function web(name: string, clusterIP: string, addresses: readonly string[], annotations = {}): readonly RawObject[] {
  const endpoints = addresses.map((address) => ({ address, nodeName: "node-b" }));
  return [
    service(name, { clusterIPs: [clusterIP], ports: [{ port: 80 }], annotations }),
    endpointSlice(`${name}-1`, { service: name, family: "IPv4", ports: [{ port: 80 }], endpoints }),
  ];
}

const ours = web("nginx-calico", "10.96.67.75", ["10.144.154.71"]);
const foreign = web("nginx-ovn", "10.96.95.98", ["10.244.0.5", "10.244.1.5"]);
const mixed = web("both", "10.96.0.7", ["10.144.1.7", "10.244.1.7"]);

async function ownership(objects: readonly RawObject[], ...args: string[]) {
  const stdin = JSON.stringify(objects);
  const run = await fairlead(["ownership", "-f", "-", "-o", "json", ...args], { stdin });
  return { ...run, answer: JSON.parse(run.out) };
}

function owners(answer: { services: readonly { service: string; ownership: string }[] }) {
  return Object.fromEntries(answer.services.map((row) => [row.service, row.ownership]));
}

test.each(goldenScenarios())("$name: without an exclusion everything is ours", async ({ objects }) => {
  const { answer } = await ownership(objects);
  expect(new Set(Object.values(owners(answer)))).toEqual(new Set(["ours"]));
});

test("an excluded CIDR takes the services behind it, whole or in part", async () => {
  const { answer } = await ownership([...ours, ...foreign, ...mixed], ...CIDRS);
  expect(owners(answer)).toEqual({
    "default/both": "mixed",
    "default/nginx-calico": "ours",
    "default/nginx-ovn": "foreign",
  });
  expect(answer.services[0]).toMatchObject({ ownEndpoints: 1, excludedEndpoints: 1, decidingCIDRs: ["10.244.0.0/16"] });
});

test("the annotation says otherwise, and why says that", async () => {
  const { answer } = await ownership(
    web("odd", "10.96.0.8", ["10.244.0.5"], { "fairlead.dev/ownership": "ours" }),
    ...CIDRS,
  );
  expect(answer.services[0]).toMatchObject({ ownership: "ours", why: expect.stringMatching(/annotation/) });
});

test("a service without endpoints is what the memory says", async () => {
  const dir = await mkdtemp(join(tmpdir(), "fairlead-memory-"));
  const file = join(dir, "ownership.json");
  const scope = "10.244.0.0/16 own-endpoints annotation";
  const services = { "default/nginx-ovn": { IPv4: "foreign" } };
  await writeFile(file, JSON.stringify({ version: 1, scope, services }));
  const empty = web("nginx-ovn", "10.96.95.98", []);
  const remembered = await ownership(empty, ...CIDRS, "--memory", file);
  expect(owners(remembered.answer)).toEqual({ "default/nginx-ovn": "foreign" });
  expect(owners((await ownership(empty, ...CIDRS)).answer)).toEqual({ "default/nginx-ovn": "ours" });
  await rm(dir, { recursive: true });
});

describe("suggested CIDRs", () => {
  test("pods in none of the CIDRs given are another network's, perhaps", async () => {
    const { answer } = await ownership([...ours, ...foreign, ...mixed], "--cluster-cidr", "10.144.0.0/16");
    expect(answer.suggestedCIDRs).toEqual([{ cidr: "10.244.0.0/16", endpoints: 3, services: 2 }]);
  });

  test("what is excluded is not suggested again, nor are the node's network and endpoints without a node", async () => {
    const hosts = web("hosts", "10.96.0.9", ["10.201.0.77"]);
    const list = endpointSlice("list-1", {
      service: "hosts",
      family: "IPv4",
      ports: [{ port: 80 }],
      endpoints: [{ address: "192.0.2.9" }],
    });
    const objects = [...foreign, ...hosts, list];
    const { answer } = await ownership(objects, ...CIDRS, "--node-address", "10.201.0.10");
    expect(answer.suggestedCIDRs).toEqual([]);
  });
});

describe("--watch", () => {
  let dir = "";
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "fairlead-watch-"));
    await mkdir(join(dir, "manifests"));
  });
  afterAll(() => rm(dir, { recursive: true }));

  const put = async (...objects: readonly (readonly RawObject[])[]) => {
    await writeFile(join(dir, "next"), JSON.stringify(objects.flat()));
    await rename(join(dir, "next"), join(dir, "manifests", "objects.json"));
  };

  test("the table, then every change until it is interrupted", async () => {
    const stop = new AbortController();
    const output = new Output();
    await put(ours, foreign);
    const ended = fairlead(["ownership", "--watch", "-f", join(dir, "manifests"), ...CIDRS], {
      signal: stop.signal,
      onOut: (text) => output.add(text),
    });
    await output.until(/nginx-ovn +IPv4 +foreign/);
    await put(ours, web("nginx-ovn", "10.96.95.98", []));
    await output.until(
      /nginx-ovn +IPv4 +foreign +0 +0 +it has no endpoints; when it last had endpoints, it was foreign/,
    );
    await put(ours, web("nginx-ovn", "10.96.95.98", ["10.144.0.5"]));
    await output.until(/nginx-ovn +IPv4 +ours/);
    await put(ours);
    await output.until(/nginx-ovn +IPv4 +gone/);
    stop.abort();
    expect(await ended).toMatchObject({ code: 0, err: "" });
  });

  test("follows the networks' objects: a Subnet makes a service foreign, and says which it was", async () => {
    const stop = new AbortController();
    const output = new Output();
    const subnet = {
      apiVersion: "kubeovn.io/v1",
      kind: "Subnet",
      metadata: { name: "ovn-default" },
      spec: { cidrBlock: "10.244.0.0/16" },
    };
    await put(ours, foreign);
    const learning = ["exclude-cidrs-from=kube-ovn-subnets", "excluded-frontends=excluded-clients"].map(
      (flag) => `--agent-flag=${flag}`,
    );
    const ended = fairlead(["ownership", "--watch", "-f", join(dir, "manifests"), ...CIDRS.slice(0, 2), ...learning], {
      signal: stop.signal,
      onOut: (text) => output.add(text),
    });
    await output.until(/nginx-ovn +IPv4 +ours/);
    await put(ours, foreign, [subnet]);
    await output.until(/nginx-ovn +IPv4 +foreign .*in 10\.244\.0\.0\/16.*\(Subnet\/ovn-default\)/);
    stop.abort();
    expect(await ended).toMatchObject({ code: 0, err: "" });
  });

  test("what cannot be watched is a usage error", async () => {
    expect(await fairlead(["ownership", "--watch", "--live"])).toMatchObject({ code: 2 });
    expect(await fairlead(["ownership", "--watch", "-f", "-"])).toMatchObject({ code: 2 });
  });
});

test("--accept says where consent is given", async () => {
  const found = await fairlead(["ownership", "--live", "--accept"]);
  expect(found.code).toBe(2);
  expect(found.err).toContain("data.accepted of the ConfigMap fairlead-networks");
});
