import { createRunner } from "@fairlead/kernel";
import { describe, expect, test } from "vitest";
import type { CniGround, CniNode } from "../src/cni/flavor.ts";
import { type ApiClient, objectPath } from "../src/control-plane/api-client.ts";
import { networkOf } from "../src/provider/kind/machine.ts";
import { daemonSet, daemonsInPods } from "../src/provider/kind/networks/delegated.ts";

const { namespace } = networkOf(process.pid);
const node = (name: string, index: number): CniNode => {
  return { name, index, addresses: {}, namespace, runner: createRunner() };
};
const FIELDS = { network: "calico", image: "localhost/calico:made-here", folder: "/run-1/calico", nodeFolder: "/n" };

const daemon = (name: string): Parameters<CniGround["daemon"]>[0] => ({
  node: node(name, 1),
  name: `${name}-bird`,
  argv: ["bird", "-c", `/run-1/calico/${name}.conf`, "-s", `/run-1/calico/${name}2.ctl`],
  env: { RUNDIR: `/run-1/calico/${name}` },
});

describe("a network's daemon as a DaemonSet", () => {
  const daemonOn = (name: string) => daemonSet(FIELDS, daemon(name));

  test("is the same whichever node asks for it", () => {
    expect(daemonOn("worker").metadata.name).toBe("calico-bird");
    expect(daemonOn("worker").metadata).toEqual(daemonOn("worker-3").metadata);
    expect(objectPath(daemonOn("worker"))).toBe("/apis/apps/v1/namespaces/kube-system/daemonsets/calico-bird");
  });

  test("the node's name is the pod's to fill in, and another's that begins with it is not", () => {
    const { template } = daemonOn("worker")["spec"] as { template: { spec: { containers: readonly unknown[] } } };
    expect(template.spec.containers).toMatchObject([
      {
        command: ["bird", "-c", "/run-1/calico/$(NODE_NAME).conf", "-s", "/run-1/calico/worker2.ctl"],
        env: [{ name: "NODE_NAME" }, { name: "RUNDIR", value: "/run-1/calico/$(NODE_NAME)" }],
        volumeMounts: [{ mountPath: "/run-1/calico" }],
      },
    ]);
  });
});

test("a daemon on one more node is one more label, and waited for until it runs", async () => {
  const asked: string[] = [];
  let looks = 0;
  const api: ApiClient = {
    post: async () => ({}),
    create: async (object) => {
      asked.push(`create ${object.metadata.name}`);
      return object;
    },
    patch: async (path, patch) => {
      asked.push(`patch ${path} ${JSON.stringify(patch)}`);
      return daemonSet(FIELDS, daemon("worker"));
    },
    get: async () => {
      looks++;
      return { items: looks < 2 ? [] : [{ status: { containerStatuses: [{ ready: true }] } }] };
    },
    delete: async () => {},
    as: () => api,
  };
  const start = daemonsInPods(FIELDS, api);
  await start(daemon("worker"));
  expect(looks).toBe(2);
  await start(daemon("worker-3"));
  const label = '{"metadata":{"labels":{"fairlead.dev/e2e-calico-bird":""}}}';
  expect(asked).toEqual([
    "create calico-bird",
    `patch /api/v1/nodes/worker ${label}`,
    `patch /api/v1/nodes/worker-3 ${label}`,
  ]);
});
