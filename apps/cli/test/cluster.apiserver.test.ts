import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { type Cluster, unlessMissing } from "../src/cluster/cluster.ts";
import { CONFIG_MAPS, DAEMON_SETS, inNamespace, type Resource } from "../src/cluster/resources.ts";
import { fairleadObjects, type Installation } from "../src/migrate/manifests.ts";
import { FAIRLEAD, NAMESPACE as INSTALLED_IN, MANAGER, placementPatch } from "../src/migrate/state.ts";
import { Kubeconfigs } from "./support/files.ts";

/**
 * Against a real kube-apiserver: FAIRLEAD_TEST_APISERVER=https://127.0.0.1:6443 and a token that may do everything in
 * the file FAIRLEAD_TEST_TOKEN_FILE. The test ground runs it; elsewhere it is left out (vitest.config.ts).
 */
const { FAIRLEAD_TEST_APISERVER: server = "", FAIRLEAD_TEST_TOKEN_FILE: tokenFile = "" } = process.env;
const token = tokenFile === "" ? "" : readFileSync(tokenFile, "utf8");

const files = new Kubeconfigs();
let cluster: Cluster;

const as = async (name: string, user: object) =>
  files.cluster({ KUBECONFIG: files.write(name, { server, "insecure-skip-tls-verify": true }, user) });

beforeAll(async () => {
  cluster = await as("admin", { token });
});

/** A cluster's own Fairlead has the names of the manifests, so the test's objects have others. */
const OWN = `fairlead-cluster-test-${process.pid}`;
const NAMESPACE = "default";
const OWN_MANAGER = `${OWN}-${MANAGER}`;

/** The installation's objects under names of the test's own. */
function ownObjects(image: string): ReturnType<typeof fairleadObjects> {
  return fairleadObjects(installation(image), "labeled").map((object) =>
    JSON.parse(
      JSON.stringify(object)
        .replaceAll(`"${INSTALLED_IN}"`, `"${NAMESPACE}"`)
        .replaceAll(`"${MANAGER}"`, `"${OWN_MANAGER}"`)
        .replaceAll(/"(name|app.kubernetes.io\/name|serviceAccountName)":"fairlead/g, `"$1":"${OWN}`),
    ),
  );
}

const installation = (image: string): Installation => ({
  options: { image, excludeClusterCIDRs: [], apiServer: undefined },
  flags: [],
  files: { "config.conf": `image: ${image}`, "kubeconfig.conf": "" },
});
const DAEMON_SETS_OURS = inNamespace(DAEMON_SETS, NAMESPACE);
const MAPS = inNamespace(CONFIG_MAPS, NAMESPACE);
const ACCOUNTS: Resource = { apiVersion: "v1", plural: "serviceaccounts", namespace: NAMESPACE };
const BINDINGS: Resource = { apiVersion: "rbac.authorization.k8s.io/v1", plural: "clusterrolebindings" };
const LABELS = { labels: `app.kubernetes.io/managed-by=${OWN_MANAGER}` };

test("Fairlead's objects: applied, placed by a patch, applied anew with another placement, and removed", async () => {
  const terms = async () => {
    const daemonSet = await cluster.get(DAEMON_SETS_OURS, OWN);
    return JSON.stringify((daemonSet as Placed).spec.template.spec.affinity ?? null);
  };
  for (const object of ownObjects("one:1")) await cluster.apply(object);
  expect(await terms()).toContain('"operator":"In"');
  const placed = await cluster.get(DAEMON_SETS_OURS, OWN);
  await cluster.patch(DAEMON_SETS_OURS, OWN, placementPatch(FAIRLEAD, placed, "unless-other"));
  expect(await terms()).toContain('"operator":"NotIn"');
  for (const object of ownObjects("two:2")) await cluster.apply(object);
  expect(await terms()).toContain('"operator":"In"');
  expect(await terms()).not.toContain("NotIn");
  expect(await cluster.list(MAPS, LABELS)).toHaveLength(2);
  // Its pods first takes a garbage collector, which this control plane has not got.
  await cluster.remove(DAEMON_SETS_OURS, OWN);
  expect(await cluster.get(DAEMON_SETS_OURS, OWN)).toBeUndefined();
  for (const resource of [MAPS, ACCOUNTS, BINDINGS]) {
    for (const object of await cluster.list(resource, LABELS))
      await cluster.remove(resource, (object as Named).metadata.name);
    expect(await cluster.list(resource, LABELS)).toEqual([]);
  }
});

interface Named {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
}

interface Placed {
  readonly spec: { readonly template: { readonly spec: { readonly affinity?: object } } };
}

test("a Lease that another one has written meanwhile is not written over", async () => {
  const resource: Resource = { apiVersion: "coordination.k8s.io/v1", plural: "leases", namespace: NAMESPACE };
  let minute = 10;
  const lease = (holderIdentity: string, resourceVersion?: string) => ({
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: OWN, namespace: NAMESPACE, ...(resourceVersion !== undefined && { resourceVersion }) },
    spec: { holderIdentity, renewTime: `2026-01-01T00:${minute++}:00.000000Z` },
  });
  const first = (await cluster.create(lease("one"))) as Named;
  await expect(cluster.create(lease("two"))).rejects.toMatchObject({ status: 409 });
  await cluster.replace(lease("one", first.metadata.resourceVersion));
  await expect(cluster.replace(lease("two", first.metadata.resourceVersion))).rejects.toMatchObject({ status: 409 });
  await cluster.remove(resource, OWN);
});

test("a resource that the server does not have is not there, and no list without items", async () => {
  const asked = () => cluster.list({ apiVersion: "kubeovn.io/v1", plural: "nothings" });
  await expect(asked()).rejects.toMatchObject({ status: 404 });
  expect(await unlessMissing(asked())).toBeUndefined();
});

test("what is refused, and what cannot be reached in a pod that runs nowhere, is said in the server's words", async () => {
  const stranger = await as("stranger", { token: "unknown" });
  await expect(stranger.list(DAEMON_SETS)).rejects.toThrow(/does not accept the credentials of \S+\/stranger/);
  const eve = await as("eve", { token, as: "eve" });
  await expect(eve.list(DAEMON_SETS)).rejects.toThrow(
    /user eve may not list daemonsets in the whole cluster; a ClusterRole with this rule allows it/,
  );
  const missing = { namespace: "default", name: "fairlead-none", container: "x" };
  await expect(cluster.runner(missing).run(["ip"])).rejects.toThrow(/answers 404: pods "fairlead-none" not found/);
  await expect(cluster.connect(missing, 1)).rejects.toThrow(/answers 404: pods "fairlead-none" not found/);
  // Where there is a scheduler it leaves the pod to another one, which is nowhere.
  const spec = { schedulerName: "none", containers: [{ name: "x", image: "x" }], automountServiceAccountToken: false };
  const metadata = { name: "fairlead-placed-nowhere", namespace: "default" };
  await cluster.create({ apiVersion: "v1", kind: "Pod", metadata, spec });
  const placedNowhere = { ...missing, name: metadata.name };
  await expect(cluster.runner(placedNowhere).run(["ip"])).rejects.toThrow(/does not have a host assigned/);
  await expect(eve.runner(placedNowhere).run(["ip"])).rejects.toThrow(
    /user eve may not get pods\/exec in namespace default; a Role/,
  );
  await cluster.remove({ apiVersion: "v1", plural: "pods", namespace: "default" }, metadata.name);
});
