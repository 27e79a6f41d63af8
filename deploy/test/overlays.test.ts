import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseControllerArguments } from "@fairlead/config";
import { beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { listenAddress } from "../../apps/cli/src/commands/verify/watch/run.ts";
import { fairleadObjects } from "../../apps/cli/src/migrate/manifests.ts";
import { AGENT_NAMES, CLI_NAME, CONTROLLER_NAME } from "../src/image/layers.ts";
import { agentVersion, deployDir } from "../src/paths.ts";
import {
  agentConfig,
  configMapOf,
  type Manifest,
  only,
  ownManifests,
  parseManifests,
  readKustomization,
  toolOptions,
} from "./support/manifests.ts";

describe("the overlay of an instance", () => {
  const dir = join(deployDir, "overlays", "instance");
  let base: Manifest[] = [];
  let kustomization: Manifest["spec"];
  beforeAll(async () => {
    base = await ownManifests(join(deployDir, "base"));
    kustomization = parse(await readFile(join(dir, "kustomization.yaml"), "utf8"));
  });
  const containerOf = (manifests: readonly Manifest[]) =>
    only(manifests, "DaemonSet")["spec"].template.spec.containers[0];

  test("the base's agent takes its configuration, and serves what is labeled for it", async () => {
    expect(agentConfig(containerOf(base), await configMapOf(dir), "config")).toMatchObject({
      kind: "run",
      warnings: [],
      config: { serviceProxyName: "edge", mode: "nftables", stateDir: "/var/lib/fairlead/instances/edge" },
    });
  });

  test("its port is the one at which the agent answers, in place of the first one's", async () => {
    const result = agentConfig(containerOf(base), await configMapOf(dir), "config");
    const { ports } = containerOf(await ownManifests(dir));
    const [firsts, own] = ports;
    expect(firsts).toEqual({
      containerPort: containerOf(base).ports[0].containerPort,
      protocol: "TCP",
      $patch: "delete",
    });
    expect(own).toEqual({ ...containerOf(base).ports[0], containerPort: 10_356, hostPort: 10_356 });
    expect(result).toMatchObject({ config: { healthzBindAddress: { port: own.containerPort } } });
  });

  test("its objects and its pods differ from the first one's, for the tools as well", () => {
    const { nameSuffix, labels, resources } = kustomization;
    expect(resources).toEqual(["../../base"]);
    expect(nameSuffix).toBe("-edge");
    expect(labels).toEqual([
      {
        pairs: { "app.kubernetes.io/name": "fairlead-edge", "fairlead.dev/service-proxy-name": "edge" },
        includeSelectors: true,
      },
    ]);
    // The first one's selector must not fit.
    expect(only(base, "DaemonSet")["spec"].selector.matchLabels).toEqual({ "app.kubernetes.io/name": "fairlead" });
  });
});

const baseDir = join(deployDir, "base");
const IMAGE = `ghcr.io/fairlead-dev/fairlead:${await agentVersion()}`;

/** Without what a migration marks its own by. */
function unmarked(object: unknown): unknown {
  const text = JSON.stringify(object, (key, value) =>
    key === "annotations" || key === "app.kubernetes.io/managed-by" ? undefined : value,
  );
  return JSON.parse(text);
}

test("what `fairlead migrate` installs is deploy/base, and the label's affinity", async () => {
  const base = await ownManifests(baseDir);
  const { data, immutable } = await configMapOf(baseDir);
  const options = { image: IMAGE, excludeClusterCIDRs: [], apiServer: undefined };
  const files = data as { "config.conf": string; "kubeconfig.conf": string };
  const installation = { options, flags: [], files };
  const own = fairleadObjects(installation, "everywhere").map(unmarked) as typeof base;
  for (const kind of ["ServiceAccount", "ClusterRoleBinding"]) expect(only(own, kind)).toEqual(only(base, kind));
  const configMap = only(own, "ConfigMap");
  expect(configMap).toMatchObject({ data, immutable, metadata: { namespace: "kube-system" } });
  const daemonSet = structuredClone(only(base, "DaemonSet"));
  const volume = daemonSet["spec"].template.spec.volumes.find(({ name }: { name: string }) => name === "config");
  volume.configMap.name = configMap.metadata.name;
  expect(only(own, "DaemonSet")).toEqual(daemonSet);
});

describe("the overlay of readers", () => {
  const dir = join(deployDir, "readers");
  let roles: Manifest[] = [];
  beforeAll(async () => {
    roles = [...(await ownManifests(dir))];
  });

  interface Rule {
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }
  const rulesOf = (role: Manifest): readonly Rule[] => role["rules"];

  test("kustomize takes every file", async () => {
    const { resources } = await readKustomization(dir);
    expect((await readdir(dir)).sort()).toEqual([...resources, "kustomization.yaml"].sort());
    expect(roles.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()).toEqual([
      "ClusterRole fairlead-reader",
      "Role fairlead-kernel-reader",
      "Role fairlead-proxy-reader",
      "Role fairlead-reader",
    ]);
  });

  test("readers read: the only thing that is created is a connection to a pod", () => {
    for (const { resources, verbs } of roles.flatMap(rulesOf)) {
      const isConnection = resources.every((one) => one === "pods/exec" || one === "pods/portforward");
      const allowed = isConnection ? ["get", "create"] : ["get", "list", "watch"];
      expect(verbs.filter((verb) => !allowed.includes(verb))).toEqual([]);
      expect(resources).not.toContain("secrets");
      expect(resources).not.toContain("*");
    }
  });

  test("programs are started in pods with a role of its own only", () => {
    const starting = roles.filter((role) => rulesOf(role).some(({ resources }) => resources.includes("pods/exec")));
    expect(starting.map(({ metadata }) => metadata.name)).toEqual(["fairlead-kernel-reader"]);
  });
});

describe("the overlay of verify --watch", () => {
  let manifests: Manifest[] = [];
  let base: Manifest[] = [];
  beforeAll(async () => {
    manifests = await ownManifests(join(deployDir, "overlays", "shadow"));
    base = await ownManifests(join(deployDir, "base"));
  });
  const podOf = (some: readonly Manifest[]) => only(some, "DaemonSet")["spec"].template.spec;

  /** As kubeadm makes it. */
  const kubeProxysConfigMap: Manifest = {
    kind: "ConfigMap",
    metadata: { name: "kube-proxy", namespace: "kube-system" },
    data: {
      "config.conf": [
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1",
        "kind: KubeProxyConfiguration",
        "bindAddress: 0.0.0.0",
        "clientConnection:",
        "  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf",
        "clusterCIDR: 10.244.0.0/16",
        'healthzBindAddress: ""',
        'metricsBindAddress: ""',
        'mode: ""',
      ].join("\n"),
      "kubeconfig.conf": "",
    },
  };

  test("it runs fairlead verify --watch with kube-proxy's own file, on a port that kube-proxy has not", () => {
    const [container] = podOf(manifests).containers;
    const { command, options } = toolOptions(container);
    expect(command).toEqual([CLI_NAME, "verify"]);
    expect(options).toMatchObject({ watch: true, config: "/var/lib/kube-proxy/config.conf", node: "node-a" });
    const agent = { ...container, command: undefined, args: [`--config=${options.config}`] };
    const result = agentConfig(agent, kubeProxysConfigMap, "kube-proxy");
    if (result.kind !== "run") throw new Error(JSON.stringify(result));
    expect(result.warnings).toEqual([]);
    expect(listenAddress(result.config)).toEqual({ address: "127.0.0.1", port: 10_449 });
  });

  test("nothing of it can be taken for the agent that serves, and it has no more rights than reading takes", async () => {
    const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    for (const { kind, metadata } of base) expect(names).not.toContain(`${kind} ${metadata.name}`);
    const pod = podOf(manifests);
    expect(pod.initContainers).toBeUndefined();
    expect(pod.volumes.map(({ name, configMap }: Manifest["spec"]) => [name, configMap?.name])).toEqual([
      ["kube-proxy", "kube-proxy"],
    ]);
    const [container] = pod.containers;
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"], add: ["NET_ADMIN", "NET_RAW"] },
    });
    expect(container.image).toBe(`ghcr.io/fairlead-dev/fairlead:${await agentVersion()}`);
    expect(pod.priorityClassName).toBeUndefined();
  });
});

describe("the overlay of the controller", () => {
  let manifests: Manifest[] = [];
  beforeAll(async () => {
    manifests = await ownManifests(join(deployDir, "overlays", "controller"));
  });
  const pod = () => only(manifests, "Deployment")["spec"].template.spec;

  test("it starts the controller, with its defaults, at the port that is asked for its health", async () => {
    const [{ command, args = [], image, ports }] = pod().containers;
    expect(command).toEqual([CONTROLLER_NAME]);
    expect(image).toBe(`ghcr.io/fairlead-dev/fairlead:${await agentVersion()}`);
    const parsed = parseControllerArguments(args, "0");
    if (parsed.kind !== "run") throw new Error(parsed.kind);
    expect(parsed.config.metricsBindAddress.port).toBe(ports[0].containerPort);
    const { namespace, name } = parsed.config.election ?? {};
    const lease = only(manifests, "Role");
    expect(lease.metadata.namespace).toBe(namespace);
    expect(lease["rules"][1].resourceNames).toEqual([name]);
  });

  test("it has no right of the node's, and none to write but slices, Events and its Lease", () => {
    expect(pod()).toMatchObject({ securityContext: { runAsNonRoot: true } });
    expect(pod().hostNetwork).toBeUndefined();
    expect(pod().containers[0].securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    type Rule = { readonly resources: readonly string[]; readonly verbs: readonly string[] };
    const rules: readonly Rule[] = only(manifests, "ClusterRole")["rules"];
    const writing = rules.filter(({ verbs }) => verbs.some((verb) => verb !== "list" && verb !== "watch"));
    expect(writing.map(({ resources, verbs }) => `${resources}: ${verbs}`)).toEqual([
      "endpointslices: list,watch,create,update,delete",
      "events: create",
    ]);
  });
});

describe("the overlay of Gateways", () => {
  const dir = join(deployDir, "overlays", "gateways");
  let manifests: Manifest[] = [];
  beforeAll(async () => {
    manifests = await ownManifests(dir);
  });

  test("it starts that job of the controller, without the role of the other one", async () => {
    const [{ args }] = only(manifests, "Deployment")["spec"].template.spec.containers;
    expect(parseControllerArguments(args, "0")).toMatchObject({ kind: "run", config: { jobs: ["gateways"] } });
    const { patches = [] } = await readKustomization(dir);
    const texts = patches.flatMap(({ patch }) => (patch === undefined ? [] : [parse(patch)]));
    const others = await ownManifests(join(deployDir, "overlays", "controller"));
    for (const kind of ["ClusterRole", "ClusterRoleBinding"]) {
      const { name } = only(others, kind).metadata;
      expect(texts).toContainEqual(expect.objectContaining({ $patch: "delete", kind, metadata: { name } }));
    }
  });

  test("it writes Services, their slices, statuses and Events, and reads nothing but what Gateways are made of", () => {
    type Rule = { readonly resources: readonly string[]; readonly verbs: readonly string[] };
    const rules: readonly Rule[] = only(manifests, "ClusterRole")["rules"];
    expect(rules.map(({ resources, verbs }) => `${resources}: ${verbs}`)).toEqual([
      "gatewayclasses,gateways,tcproutes,udproutes,referencegrants: list,watch",
      "gatewayclasses/status,gateways/status,tcproutes/status,udproutes/status: update",
      "namespaces: list,watch",
      "services: list,watch,get,create,update,delete",
      "endpointslices: list,watch,create,update,delete",
      "events: create",
    ]);
  });
});

/** kube-proxy's DaemonSet as operators of two pod networks have it, with its image changed and nothing else. */
describe("the founding case's manifest", () => {
  let manifests: Manifest[] = [];
  const container = () => only(manifests, "DaemonSet")["spec"].template.spec.containers[0];

  beforeAll(async () => {
    manifests = parseManifests(await readFile(join(import.meta.dirname, "fixtures/founding-case.yaml"), "utf8"));
  });

  test("its command is a name of the agent in the image", () => {
    expect(AGENT_NAMES).toContain(container().command[0]);
  });

  test("the agent takes arguments and configuration as they are", () => {
    const result = agentConfig(container(), only(manifests, "ConfigMap"), "kube-proxy");
    expect(result).toMatchObject({
      kind: "run",
      config: {
        mode: "iptables",
        hostnameOverride: "node-a",
        clusterCIDRs: ["10.144.0.0/16"],
        client: { kubeconfig: "/var/lib/kube-proxy/kubeconfig.conf" },
        multiCNI: { excludeClusterCIDRs: ["10.244.0.0/16"] },
        logging: { verbosity: 5 },
      },
    });
  });
});
