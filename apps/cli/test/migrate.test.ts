import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { afterEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { ownMark } from "../src/commands/migrate/holder.ts";
import { ownFolder } from "./support/files.ts";
import {
  emptyCluster,
  kubeadmCluster,
  kubernetesService,
  type MigratedCluster,
  NODE_NAMES,
  scenario,
  scenarioCluster,
  stopClusters,
} from "./support/kubeadm-cluster.ts";
import { nodePrograms } from "./support/recorded.ts";
import { fairlead as run } from "./support/run.ts";

const NOW = ["--skip-verify", "--hold", "0", "--timeout", "0"];
const fairlead = (argv: readonly string[], cluster: MigratedCluster) =>
  run(argv, { env: { KUBECONFIG: cluster.kubeconfig } });

afterEach(stopClusters);

async function served(cluster: MigratedCluster, options: readonly string[] = []): Promise<readonly string[]> {
  const { out } = await fairlead(["migrate", "-o", "json", ...options], cluster);
  const { nodes } = JSON.parse(out);
  return nodes.map(({ pods }: { pods: object }) => Object.keys(pods).join("+"));
}

/** A process that ends, and a parent that does not wait for it; a shell sometimes does. */
const PARENT = ["perl", "-e", "$| = 1; my $child = fork; exit unless $child; print qq($child\\n); sleep"] as const;

/** The marks of a process that has ended, and whose parent does not ask for it. */
async function* zombies() {
  for await (const line of createRunner().stream(PARENT)) {
    const pid = Number(line);
    const fields = async () => (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
    await expect.poll(async () => (await fields())[0]).toBe("Z");
    yield { pid, start: Number((await fields())[19]) };
    return;
  }
}

const changes = (cluster: MigratedCluster) => cluster.changes;

describe("migrate", () => {
  test("says what fits and what it would do, and changes nothing", async () => {
    const cluster = await kubeadmCluster();
    const { out, code } = await fairlead(["migrate"], cluster);
    expect(out).toMatchInlineSnapshot(`
      "✓ configuration: mode iptables, clusterCIDR 10.144.0.0/16
      ✓ API server: https://192.0.2.1:6443

      NODE     READY   SERVED BY    PROBLEM
      node-a   yes     kube-proxy
      node-b   yes     kube-proxy
      node-c   yes     kube-proxy

      With --apply:
        1. kube-proxy's DaemonSet leaves nodes with the label fairlead.dev/proxy=fairlead; its pods start once more
        2. Fairlead's DaemonSet (ghcr.io/fairlead-dev/fairlead:0.0.0-dev) is installed for nodes with that label
        3. one after the other, verified before and after: node-a, node-b, node-c
        4. nodes to come get Fairlead; kube-proxy's DaemonSet stays, without pods, for --revert
      "
    `);
    expect(code).toBe(0);
    expect(changes(cluster)).toEqual([]);
  });

  test("writes the manifests", async () => {
    const folder = ownFolder();
    const given = ["--image", "registry/fairlead:1", "--exclude-cluster-cidr", "10.244.0.0/16"];
    const argv = ["migrate", "--output-dir", folder, ...given];
    expect(await fairlead(argv, await kubeadmCluster())).toMatchObject({ code: 0 });
    expect((await readdir(folder)).sort()).toEqual([
      "clusterrolebinding.yaml",
      "configmap.yaml",
      "daemonset.yaml",
      "serviceaccount.yaml",
    ]);
    const text = await readFile(join(folder, "daemonset.yaml"), "utf8");
    expect(parse(text).spec.template.spec.containers[0].image).toBe("registry/fairlead:1");
    expect(await readFile(join(folder, "configmap.yaml"), "utf8")).toContain("10.244.0.0/16");
  });

  test("what is in the way is exit 1, and nothing is changed", async () => {
    const cluster = await kubeadmCluster();
    cluster.add(kubernetesService("192.0.2.1"));
    const { out, code } = await fairlead(["migrate", "--apply", ...NOW], cluster);
    expect(out).toContain("✗ API server: https://192.0.2.1:6443 is the address of a Service");
    expect(code).toBe(1);
    expect(changes(cluster)).toEqual([]);
  });

  test("carries it out node by node, and goes back", async () => {
    const cluster = await kubeadmCluster();
    const { out, code } = await fairlead(["migrate", "--apply", ...NOW], cluster);
    expect(out).toMatch(/node-a: gets fairlead\n[\s\S]*node-b: gets fairlead\n[\s\S]*node-c: gets fairlead\n/);
    expect(out).toMatch(/Every node, and those to come, has fairlead\.\n$/);
    expect(code).toBe(0);
    expect(await served(cluster)).toEqual(["fairlead", "fairlead", "fairlead"]);
    const before = changes(cluster).length;
    expect(await fairlead(["migrate", "--apply", ...NOW], cluster)).toMatchObject({ code: 0 });
    expect(changes(cluster)).toHaveLength(before);

    expect(await fairlead(["migrate", "--revert", ...NOW], cluster)).toMatchObject({ code: 0 });
    expect(await served(cluster)).toEqual(["kube-proxy", "kube-proxy", "kube-proxy"]);
    expect(cluster.names()).toEqual((await kubeadmCluster()).names());
    for (const { metadata } of cluster.objects()) {
      expect(metadata.labels ?? {}).not.toHaveProperty(["fairlead.dev/proxy"]);
      expect(metadata.annotations ?? {}).toEqual({});
    }
  });

  test("a killed run is gone on with, also without the options of the first one", async () => {
    const cluster = await kubeadmCluster();
    cluster.refuses = ({ path }) => path.endsWith("/nodes/node-b");
    const given = ["--image", "registry/fairlead:1", "--exclude-cluster-cidr", "10.244.0.0/16"];
    expect(await fairlead(["migrate", "--apply", ...NOW, ...given], cluster)).toMatchObject({ code: 3 });
    expect(await served(cluster)).toEqual(["fairlead", "kube-proxy", "kube-proxy"]);
    cluster.refuses = () => false;
    const config = cluster.get("DaemonSet", "fairlead").metadata.annotations;
    expect(await fairlead(["migrate", "--apply", ...NOW], cluster)).toMatchObject({ code: 0 });
    expect(cluster.get("DaemonSet", "fairlead").metadata.annotations).toEqual(config);
  });

  test("a node on which Fairlead does not become ready is put back and says why", async () => {
    const cluster = await kubeadmCluster();
    cluster.unready.add("node-b fairlead");
    const { out, code } = await fairlead(["migrate", "--apply", ...NOW], cluster);
    expect(out).toContain("Stopped: node-b: fairlead is not ready; kube-proxy serves it\n");
    expect(code).toBe(1);
    expect(await served(cluster)).toEqual(["fairlead", "kube-proxy", "kube-proxy"]);
    expect((await fairlead(["migrate"], cluster)).out).toMatch(
      /^node-b .* kube-proxy +node-b: fairlead is not ready$/m,
    );
  });

  test("no run changes what another one is changing, and each ends without a trace", async () => {
    const cluster = await kubeadmCluster();
    const holders = new Set<string>();
    cluster.refuses = () => {
      holders.add(cluster.get("Lease", "fairlead-migrate").spec.holderIdentity);
      return false;
    };
    expect(await fairlead(["migrate", "--apply", ...NOW], cluster)).toMatchObject({ code: 0 });
    expect([...holders]).toEqual([expect.stringMatching(/^process \d+ on ./)]);
    expect(cluster.get("Lease", "fairlead-migrate")).toBeUndefined();

    const before = changes(cluster).length;
    cluster.onGet = (path) => {
      if (!path.endsWith("/leases/fairlead-migrate")) return;
      const metadata = { name: "fairlead-migrate" };
      cluster.add({ kind: "Lease", metadata, spec: { holderIdentity: "process 7 on laptop" } });
    };
    const { err, code } = await fairlead(["migrate", "--revert", ...NOW], cluster);
    expect(err).toMatch(/another run has not ended: process 7 on laptop; .*\n.*is changing this cluster: process 7/);
    expect(code).toBe(3);
    expect(changes(cluster)).toHaveLength(before);
  });

  test("one that was killed on this machine is known to be gone, one that runs is not waited for", async () => {
    const cluster = await kubeadmCluster();
    const annotations = (mark: object) => ({ "fairlead.dev/process": JSON.stringify(mark) });
    const held = (mark: object) => {
      const metadata = { name: "fairlead-migrate", annotations: annotations(mark) };
      cluster.add({ kind: "Lease", metadata, spec: { holderIdentity: "process 7 on laptop" } });
    };
    held(ownMark());
    const { err, code } = await fairlead(["migrate", "--apply", ...NOW], cluster);
    expect(err).toBe("another run is changing this cluster: process 7 on laptop\n");
    expect(code).toBe(3);
    expect(changes(cluster)).toEqual([]);
    const expectTaken = async (mark: object) => {
      held({ ...ownMark(), ...mark });
      expect(await fairlead(["migrate", "--apply", ...NOW], cluster)).toMatchObject({ code: 0, err: "" });
      expect(cluster.get("Lease", "fairlead-migrate")).toBeUndefined();
    };
    await expectTaken({ start: 1 });
    for await (const zombie of zombies()) await expectTaken(zombie);
  });

  test.each([
    ["--apply --revert", 2, /^--apply and --revert are mutually exclusive/],
    ["--hold soon", 2, /^--hold=soon: give seconds, 0 to 99999/],
  ])("%s is a usage error", async (words, code, err) => {
    const reported = await fairlead(["migrate", ...words.split(" ")], await kubeadmCluster());
    expect(reported.err).toMatch(err);
    expect(reported.code).toBe(code);
  });

  test("another program's DaemonSet of the same name is not touched, and a cluster without kube-proxy is reported", async () => {
    const cluster = await kubeadmCluster();
    cluster.add({ kind: "DaemonSet", metadata: { name: "fairlead" }, spec: { selector: {}, template: { spec: {} } } });
    const { err, code } = await fairlead(["migrate", "--apply", ...NOW], cluster);
    expect(err).toMatch(/DaemonSet kube-system\/fairlead is there, and not from `fairlead migrate`/);
    expect(code).toBe(3);
    const none = await fairlead(["migrate"], await emptyCluster());
    expect(none.err).toMatch(/DaemonSet kube-system\/kube-proxy is not there/);
    expect(none.code).toBe(3);
  });
});

describe("kube-proxy's DaemonSet of another name", () => {
  const elsewhere = { name: "proxy-linux", namespace: "network" };
  const cluster = () => kubeadmCluster(NODE_NAMES, elsewhere);
  const GIVEN = ["--kube-proxy", "network/proxy-linux"];

  test("is named in the error where no flag gives it", async () => {
    const { err, code } = await fairlead(["migrate"], await cluster());
    expect(err).toContain(
      "DaemonSet kube-system/kube-proxy is not there: kube-proxy is the program of network/proxy-linux: give --kube-proxy=network/proxy-linux",
    );
    expect(code).toBe(3);
  });

  test("is left and gone back to, also by a run without the flag", async () => {
    const one = await cluster();
    expect(await fairlead(["migrate", "--apply", ...NOW, ...GIVEN], one)).toMatchObject({ code: 0, err: "" });
    const before = changes(one).length;
    expect(await fairlead(["migrate", "--apply", ...NOW], one)).toMatchObject({ code: 0, err: "" });
    expect(changes(one)).toHaveLength(before);
    expect(await served(one)).toEqual(["fairlead", "fairlead", "fairlead"]);
    const other = await fairlead(["migrate", "--revert", ...NOW, "--kube-proxy=proxy-linux"], one);
    expect(other).toMatchObject({
      code: 3,
      err: "--kube-proxy=kube-system/proxy-linux: the migration that is under way takes the place of network/proxy-linux\n",
    });
    expect(await fairlead(["migrate", "--revert", ...NOW], one)).toMatchObject({ code: 0, err: "" });
    expect(await served(one, GIVEN)).toEqual(["kube-proxy", "kube-proxy", "kube-proxy"]);
    expect(one.get("DaemonSet", "fairlead")).toBeUndefined();
  });

  test.each(["a/b/c", "Kube-Proxy", "", "/x"])("%j is a usage error", async (name) => {
    expect(await fairlead(["migrate", `--kube-proxy=${name}`], await cluster())).toMatchObject({
      code: 2,
      err: expect.stringContaining(`--kube-proxy=${name}: give DAEMONSET or NAMESPACE/DAEMONSET`),
    });
  });
});

describe("verified", () => {
  const apply = ["migrate", "--apply", "--hold", "0", "--timeout", "0"];
  const checkPods = (cluster: MigratedCluster) =>
    cluster.objects().filter(({ metadata }) => metadata.name.startsWith("fairlead-check"));

  test("before and after its change, by a pod of Fairlead's image that is there only for that", async () => {
    const cluster = await scenarioCluster(["node-a"]);
    const { out, err, code } = await fairlead(apply, cluster);
    expect({ err, code }).toEqual({ err: "", code: 0 });
    expect(out).toMatch(/node-a: verified before its change\nnode-a: gets fairlead\nnode-a: verified with fairlead/);
    expect(checkPods(cluster)).toEqual([]);
  });

  test("what other programs' rules do to traffic, and the order in a built-in chain, is not the proxy's", async () => {
    const cluster = await scenarioCluster(["node-a"]);
    const masquerade = "-A POSTROUTING -s 10.144.0.0/16 -j MASQUERADE\n";
    const firewall = /^-A INPUT -j KUBE-FIREWALL\n/m;
    const rules = scenario.iptables
      .replace(/^(-A POSTROUTING .*\n)/m, `$1${masquerade}`)
      .replace(firewall, "")
      .replace(/((?:^-A INPUT .*\n)+)/m, "$1-A INPUT -j KUBE-FIREWALL\n");
    expect(rules).toContain(masquerade);
    expect(rules).toMatch(firewall);
    cluster.programs = () => nodePrograms(rules);
    expect(await fairlead(apply, cluster)).toMatchObject({ code: 0 });
  });

  test("a node whose rules differ after its change is put back", async () => {
    const cluster = await scenarioCluster(["node-a"]);
    const damaged = scenario.iptables.replace(/^-A KUBE-SERVICES -d 203.*\n/m, "");
    const isChanged = () => cluster.get("Node", "node-a").metadata.labels["fairlead.dev/proxy"] === "fairlead";
    cluster.programs = () => nodePrograms(isChanged() ? damaged : scenario.iptables);
    const { out, code } = await fairlead(apply, cluster);
    expect(out).toMatch(
      /Stopped: node-a, served by fairlead: default\/lb.*missing: nat KUBE-SERVICES.*; kube-proxy serves it/,
    );
    expect(code).toBe(1);
    expect(checkPods(cluster)).toEqual([]);
  });
});

const APPLY = ["migrate", "--apply", ...NOW];
const REVERT = ["migrate", "--revert", ...NOW];

const untouched = () => scenarioCluster(["node-a"]);

async function migrated(): Promise<MigratedCluster> {
  const cluster = await untouched();
  expect(await fairlead(APPLY, cluster)).toMatchObject({ code: 0 });
  return cluster;
}

test.each([
  ["--apply", APPLY, untouched],
  ["--revert", REVERT, migrated],
])("%s: whichever change the API server refuses, it says what to do, and then goes on", async (_flag, argv, before) => {
  for (let last = false, at = 1; !last; at++) {
    const cluster = await before();
    let seen = 0;
    cluster.refuses = () => ++seen === at;
    const { code, err } = await fairlead(argv, cluster);
    last = seen < at;
    if (last) continue;
    expect({ code, err }, `change ${at}`).toEqual({
      code: 3,
      err: expect.stringMatching(/^Stopped: .*killed\nCorrect that and run the command again: it continues\.\n$/),
    });
    cluster.refuses = () => false;
    expect(await fairlead(argv, cluster), `change ${at}`).toMatchObject({ code: 0, err: "" });
  }
});

test("two at once: whenever the second comes, everything is changed once", async () => {
  const changesOf = (cluster: MigratedCluster) => cluster.changes.map(({ method, path }) => `${method} ${path}`);
  const undisturbed = await migrated();
  for (let at = 1; at <= undisturbed.changes.length; at++) {
    const cluster = await untouched();
    let seen = 0;
    let second: ReturnType<typeof fairlead> | undefined;
    cluster.refuses = () => {
      if (++seen === at) second = fairlead(APPLY, cluster);
      return false;
    };
    expect(await fairlead(APPLY, cluster), `change ${at}`).toMatchObject({ code: 0, err: "" });
    // It is refused, or comes when the first one has ended.
    const err = (await second)?.err;
    expect(err, `change ${at}`).toMatch(/^(?:another run is changing this cluster: process \d+ on .*\n)?$/);
    expect(changesOf(cluster), `change ${at}`).toEqual(changesOf(undisturbed));
  }
});

test("two at the same moment: one of them does it all", async () => {
  const cluster = await untouched();
  const ended = await Promise.all([fairlead(APPLY, cluster), fairlead(APPLY, cluster)]);
  expect(ended.map(({ code }) => code)).toContain(0);
  expect(cluster.changes).toHaveLength((await migrated()).changes.length);
});
