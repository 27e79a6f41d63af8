import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readConsent } from "@fairlead/intake";
import { endpointSlice, type RawObject, service, userDefinedNetwork as udn } from "@fairlead/testkit";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withEntry } from "../src/commands/ownership-consent.ts";
import { configFile, fileOf, kubeconfigFor, ownFolder } from "./support/files.ts";
import { web } from "./support/objects.ts";
import { fairlead, started } from "./support/run.ts";

const CIDRS = ["--cluster-cidr", "10.144.0.0/16", "--exclude-cluster-cidr", "10.244.0.0/16"];

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
  const scope = "10.244.0.0/16 own-endpoints annotation";
  const services = { "default/nginx-ovn": { IPv4: "foreign" } };
  const file = fileOf({ version: 1, scope, services });
  const empty = web("nginx-ovn", "10.96.95.98", []);
  const remembered = await ownership(empty, ...CIDRS, "--memory", file);
  expect(owners(remembered.answer)).toEqual({ "default/nginx-ovn": "foreign" });
  expect(owners((await ownership(empty, ...CIDRS)).answer)).toEqual({ "default/nginx-ovn": "ours" });
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
  const dir = ownFolder();
  beforeAll(() => mkdir(join(dir, "manifests")));

  const put = async (...objects: readonly (readonly RawObject[])[]) => {
    await writeFile(join(dir, "next"), JSON.stringify(objects.flat()));
    await rename(join(dir, "next"), join(dir, "manifests", "objects.json"));
  };

  test("the table, then every change until it is interrupted", async ({ signal }) => {
    await put(ours, foreign);
    await using watching = started(signal, ["ownership", "--watch", "-f", join(dir, "manifests"), ...CIDRS]);
    await watching.prints(/nginx-ovn +IPv4 +foreign/);
    await put(ours, web("nginx-ovn", "10.96.95.98", []));
    await watching.prints(
      /nginx-ovn +IPv4 +foreign +0 +0 +it has no endpoints; when it last had endpoints, it was foreign/,
    );
    await put(ours, web("nginx-ovn", "10.96.95.98", ["10.144.0.5"]));
    await watching.prints(/nginx-ovn +IPv4 +ours/);
    await put(ours);
    await watching.prints(/nginx-ovn +IPv4 +gone/);
    expect(await watching.close()).toMatchObject({ code: 0, err: "" });
  });

  test("follows the networks' objects: a Subnet makes a service foreign, and says which it was", async ({ signal }) => {
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
    await using watching = started(signal, [
      "ownership",
      "--watch",
      "-f",
      join(dir, "manifests"),
      ...CIDRS.slice(0, 2),
      ...learning,
    ]);
    await watching.prints(/nginx-ovn +IPv4 +ours/);
    await put(ours, foreign, [subnet]);
    await watching.prints(/nginx-ovn +IPv4 +foreign .*in 10\.244\.0\.0\/16.*\(Subnet\/ovn-default\)/);
    expect(await watching.close()).toMatchObject({ code: 0, err: "" });
  });

  test("follows annotations that rules ask for, and where pods are", async ({ signal }) => {
    const inVPC = (vpc: string) =>
      service("blue", {
        clusterIPs: ["10.96.1.1"],
        ports: [{ port: 80 }],
        annotations: { "ovn.kubernetes.io/vpc": vpc },
      });
    const rule = { annotation: "ovn.kubernetes.io/vpc", notIn: ["ovn-cluster"], ownership: "foreign" };
    const config = configFile({ multiCNI: { serviceRules: [rule] } });
    await put([inVPC("ovn-cluster")]);
    await using watching = started(signal, ["ownership", "--watch", "-f", join(dir, "manifests"), "--config", config]);
    await watching.prints(/default\/blue +IPv4 +ours/);
    await put([inVPC("blue")]);
    await watching.prints(
      /default\/blue +IPv4 +foreign .*rule: annotation ovn.kubernetes.io\/vpc.*; its pods are in VPC blue/,
    );
    await put([inVPC("ovn-cluster"), udn.service, udn.slice]);
    await watching.prints(/nad-l3\/sample-deployment +IPv4 +ours/);
    await put([inVPC("ovn-cluster"), udn.service, udn.slice, udn.mirrored]);
    await watching.prints(
      /sample-deployment +IPv4 +ours .*; its pods are in user-defined network l3-network: 10\.128\.1\.3/,
    );
    expect(await watching.close()).toMatchObject({ code: 0, err: "" });
  });

  test("what cannot be watched is a usage error", async () => {
    expect(await fairlead(["ownership", "--watch", "--live"])).toMatchObject({ code: 2 });
    expect(await fairlead(["ownership", "--watch", "-f", "-"])).toMatchObject({ code: 2 });
  });
});

describe("--accept and --forget", () => {
  const POOL = {
    apiVersion: "crd.projectcalico.org/v1",
    kind: "IPPool",
    metadata: { name: "default" },
    spec: { cidr: "10.144.0.0/16" },
  };
  const SUBNET = {
    apiVersion: "kubeovn.io/v1",
    kind: "Subnet",
    metadata: { name: "vpn" },
    spec: { cidrBlock: "10.144.8.0/22" },
  };
  const flags = ["exclude-cidrs-from=kube-ovn-subnets", "cluster-cidr-from=calico-ippools", "excluded-frontends=all"];
  const learning = flags.map((flag) => `--agent-flag=${flag}`);
  const api = new LightApiServer();
  let kubeconfig = "";

  beforeAll(async () => {
    kubeconfig = kubeconfigFor(await api.start());
  });
  afterAll(() => api.stop());

  const change = (...args: readonly string[]) => {
    const objects = [
      POOL,
      SUBNET,
      ...web("moved", "10.96.0.9", ["10.144.8.5"]),
      ...web("stays", "10.96.0.8", ["10.144.0.5"]),
    ];
    const given = ["ownership", "-f", "-", "--kubeconfig", kubeconfig, ...learning, ...args];
    return fairlead(given, { stdin: JSON.stringify(objects), env: { USER: "alice" } });
  };
  const written = () => api.store.get("/api/v1/configmaps", "kube-system/fairlead-networks");

  test("the preview names what is held and what changes hands, and writes nothing", async () => {
    const found = await change("--accept", "10.144.8.0/21");
    expect(found.out).toBe(
      "Takes effect: 10.144.8.0/22 of Subnet/vpn\nChanges hands:\n  default/moved IPv4: ours -> foreign\n" +
        "Nothing is written; --yes adds 10.144.8.0/21 to ConfigMap kube-system/fairlead-networks.\n",
    );
    expect(written()).toBeUndefined();
    expect((await change("--accept", "192.0.2.0/24")).out).toContain(
      "Nothing that is held now lies in 192.0.2.0/24.\nNo service",
    );
  });

  test.each([
    [["--accept", "10.144.8.1/22"], "--accept 10.144.8.1/22: has host bits set; write 10.144.8.0/22"],
    [["--forget", "ten"], "--forget ten: must be a CIDR"],
    [["--accept", "10.0.0.0/16", "--forget", "10.0.0.0/16"], "one at a time"],
    [["--accept", "10.0.0.0/16", "--live"], "agents take no consent of their own"],
  ])("%j is a usage error", async (args, message) => {
    const found = await change(...args);
    expect([found.code, found.err]).toEqual([2, expect.stringContaining(message)]);
  });

  test("--yes writes the ConfigMap with the caller's rights, and adds to what is there", async () => {
    const first = await change("--accept", "10.144.8.0/22", "--why", "moved to OVN", "--yes");
    expect(first.code).toBe(0);
    expect(first.out).toContain("Written: 10.144.8.0/22 is in accepted of ConfigMap kube-system/fairlead-networks.\n");
    await change("--accept", "10.144.12.0/22", "--yes");
    await change("--forget", "10.17.0.0/16", "--yes");
    const { consent, problems } = readConsent(written(), { accepted: [], forgotten: [], unprotected: [] });
    expect(problems).toEqual([]);
    expect(consent).toMatchObject({
      accepted: [{ cidr: "10.144.8.0/22" }, { cidr: "10.144.12.0/22" }],
      forgotten: [{ cidr: "10.17.0.0/16", until: expect.any(Number) }],
    });
    expect(JSON.stringify(written())).toContain("moved to OVN");
    expect(JSON.stringify(written())).toContain("alice");
  });

  test("a configuration that learns nothing has nothing to accept", async () => {
    const found = await fairlead(["ownership", "-f", "-", "--accept", "10.0.0.0/16"], { stdin: "[]" });
    expect(found.err).toContain("--accept: this configuration learns nothing");
  });
});

test("an entry is added to a list, which keeps its comments and has a CIDR once", () => {
  const entry = { cidr: "10.16.0.0/16", by: "alice" };
  expect(withEntry(undefined, entry)).toBe("- cidr: 10.16.0.0/16\n  by: alice\n");
  const text = "# moved in May\n- { cidr: 10.17.0.0/16, by: bob } # vpn\n- { cidr: 10.16.0.0/16 }\n";
  expect(withEntry(text, entry)).toBe(
    "# moved in May\n- { cidr: 10.17.0.0/16, by: bob } # vpn\n- cidr: 10.16.0.0/16\n  by: alice\n",
  );
  expect(withEntry('[{"cidr": "10.17.0.0/16"}]', entry)).toContain("10.16.0.0/16");
  for (const bad of ["a: b", "[", "text"]) expect(withEntry(bad, entry)).toBeUndefined();
});
