import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { goldenScenario } from "@fairlead/testkit";
import { collectionOf, LightApiServer } from "@fairlead/testkit/api-server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fairlead } from "./support/run.ts";

const scenario = goldenScenario("09-loadbalancer");
const { iptables } = scenario;
const objects = [...scenario.objects, { apiVersion: "v1", kind: "Node", metadata: { name: "node-a" } }];
const NODE = ["--node", "node-a", "--node-address", "10.201.0.10", "--cluster-cidr", "10.144.0.0/16"];

describe("a cluster behind a kubeconfig", () => {
  const server = new LightApiServer();
  let dir = "";
  const file = (name: string) => join(dir, name);

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "fairlead-cluster-"));
    await writeFile(file("objects.json"), JSON.stringify(objects));
    await writeFile(file("rules"), iptables);
    // A server stores what it has filled in; the manifests' source fills in the same.
    for (const object of objects) server.store.put(collectionOf(object), object);
    const url = await server.start();
    const context = { name: "c", context: { cluster: "c", user: "u" } };
    const config = { clusters: [{ name: "c", cluster: { server: url } }], contexts: [context], "current-context": "c" };
    await writeFile(file("kubeconfig"), JSON.stringify({ ...config, users: [{ name: "u", user: {} }] }));
  });

  afterAll(async () => {
    await server.stop();
    await rm(dir, { recursive: true });
  });

  const fromCluster = (command: string, ...more: readonly string[]) =>
    fairlead([command, ...more, "--kubeconfig", file("kubeconfig"), ...NODE]);
  const fromManifests = (command: string, ...more: readonly string[]) =>
    fairlead([command, ...more, "-f", file("objects.json"), ...NODE]);

  test.each([
    ["plan", []],
    ["plan", ["-o", "json"]],
    ["explain", ["default/lb"]],
    ["explain", ["203.0.113.9:80", "-o", "json"]],
    ["ownership", []],
    ["verify", ["--rules", "RULES"]],
  ])("%s %j says what it says of the same manifests", async (command, args) => {
    const more = args.map((arg) => (arg === "RULES" ? file("rules") : arg));
    const said = await fromCluster(command, ...more);
    // That no proxy could be asked is said of a cluster only.
    const err = said.err.replace(/^configuration: as the options say; not compared: .*\n/, "");
    expect({ ...said, err }).toEqual(await fromManifests(command, ...more));
    expect(said.code).toBe(0);
    expect(said.out).not.toBe("");
  });

  test("explain sees whether a kernel agrees, and diff what would change there", async () => {
    const { out, code } = await fromCluster("explain", "default/lb", "--rules", file("rules"));
    expect(out).toMatch(/^Kernel: agrees, \d+ kinds of packets traced$/m);
    expect(code).toBe(0);
    const same = await fairlead(["diff", "cluster", file("rules"), "--kubeconfig", file("kubeconfig"), ...NODE]);
    expect(same.out).toMatch(/^Traffic: the same, \d+ kinds of packets traced$/m);
    const [rule = ""] = /^-A KUBE-SERVICES -d 203\.0\.113\.9.*\n/m.exec(iptables) ?? [];
    await writeFile(file("damaged"), iptables.replace(rule, ""));
    const changed = await fairlead(["diff", "cluster", file("damaged"), "--kubeconfig", file("kubeconfig"), ...NODE]);
    expect(changed.out).toMatch(/^ {2}tcp 203\.0\.113\.9:80 from /m);
    expect(changed.code).toBe(1);
  });

  test("a node that the cluster does not have is an error", async () => {
    const line = ["plan", "--kubeconfig", file("kubeconfig"), "--node", "node-x"];
    const { err, code } = await fairlead(line);
    expect(err).toBe("--node=node-x: there is no such Node; there are: node-a; did you mean node-a?\n");
    expect(code).toBe(3);
  });

  test("--context names the cluster and the namespace of services that are named without one", async () => {
    const config = JSON.parse(await readFile(file("kubeconfig"), "utf8"));
    const contexts = [
      { name: "gone", context: { cluster: "none" } },
      { name: "here", context: { cluster: "c", user: "u", namespace: "default" } },
      { name: "shop", context: { cluster: "c", user: "u", namespace: "shop" } },
    ];
    await writeFile(file("contexts"), JSON.stringify({ ...config, contexts, "current-context": "gone" }));
    const explain = (...more: readonly string[]) =>
      fairlead(["explain", "lb", "--kubeconfig", file("contexts"), ...NODE, ...more]);
    expect(await explain("--context", "here")).toMatchObject({ code: 0 });
    expect((await explain("--context", "shop")).err).toMatch(
      /^lb: there is no such Service.*; did you mean default\/lb\?/m,
    );
    expect(await explain("--context", "shop", "-n", "default")).toMatchObject({ code: 0 });
    const { code, err } = await explain("--context", "home");
    expect(err).toContain('contexts has no context "home"; it has: gone, here, shop\n');
    expect(err).toMatch(/^--context=home: /);
    expect(code).toBe(2);
  });

  test("a server that is not there is told", async () => {
    const gone = { clusters: [{ name: "c", cluster: { server: "http://127.0.0.1:9" } }], "current-context": "c" };
    const context = { name: "c", context: { cluster: "c", user: "u" } };
    await writeFile(file("gone"), JSON.stringify({ ...gone, contexts: [context], users: [{ name: "u", user: {} }] }));
    const { code, err } = await fairlead(["ownership", "--kubeconfig", file("gone"), ...NODE.slice(0, 2)]);
    expect(err).toMatch(/^the API server http:\/\/127\.0\.0\.1:9 does not answer: /m);
    expect(code).toBe(3);
  });
});
