import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import type { Argv, RunOptions, RunResult } from "@fairlead/kernel";
import { fabricAddress, prefixLength, serviceCIDRs } from "../netns/addresses.ts";
import { rejectAtTheEnd } from "../netns/ground.ts";
import { type ContainerNetwork, containerNetwork } from "./containers.ts";
import type { ClusterImages } from "./images/provide.ts";
import { type KindSettings, kindConfig } from "./kind-config.ts";
import type { Machine } from "./machine.ts";

/** A cluster as kind makes it: nodes that wait for a pod network, and a control plane that answers. */
export interface KindCluster {
  /** The control plane's first. */
  readonly nodes: readonly KindNode[];
  readonly controlPlane: KindNode;
  /** The administrator's, for programs on the cluster's machine. */
  readonly kubeconfig: string;
  /** Runs kubectl as the cluster's administrator. */
  kubectl(args: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Takes an image of an OCI archive in on every node. */
  loadImage(archive: string): Promise<void>;
}

export interface KindNode extends ContainerNetwork {
  /** Of the container and of the Node. */
  readonly name: string;
  readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
  /** Runs a program of the node's own. */
  exec(argv: Argv, options?: RunOptions): Promise<RunResult>;
}

const NAME = "fairlead";
const NETWORK = "fairlead-e2e";
const BRIDGE = "br0";
const IMAGE = "fairlead-e2e/node:built";
const CREATE_MS = 15 * 60_000;
const LOAD_MS = 5 * 60_000;

export type NewCluster = Pick<KindSettings, "families" | "workers" | "podCIDRs" | "mounts">;

/** @throws CommandError with what kind said */
export async function createKindCluster(
  machine: Machine,
  images: ClusterImages,
  wanted: NewCluster,
  folder: string,
): Promise<KindCluster> {
  const { runner } = machine;
  await rejectAtTheEnd(runner, wanted.families);
  const docker = (args: readonly string[], options?: RunOptions) => runner.run(["docker", ...args], options);
  await docker(
    [
      "import",
      "--change",
      'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]',
      "--change",
      "ENV container=docker",
      "--change",
      "STOPSIGNAL SIGRTMIN+3",
      images.node,
      IMAGE,
    ],
    { timeoutMs: LOAD_MS },
  );
  await docker(networkArgs(wanted.families));
  const config = join(folder, "kind.json");
  const serviceRanges = wanted.families.map((family) => serviceCIDRs[family]);
  const mounts = { ...wanted.mounts, [images.components]: "/kind/images" };
  await writeFile(config, kindConfig({ ...wanted, mounts, kubeProxy: "none", serviceCIDRs: serviceRanges }));
  const kind = (args: readonly string[], options?: RunOptions) =>
    runner.run(["env", `KIND_EXPERIMENTAL_DOCKER_NETWORK=${NETWORK}`, images.programs.kind, ...args], options);
  const kubeconfig = join(folder, "admin.kubeconfig");
  await kind(
    [
      "create",
      "cluster",
      `--name=${NAME}`,
      `--image=${IMAGE}`,
      `--config=${config}`,
      `--kubeconfig=${kubeconfig}`,
      "--retain",
    ],
    {
      timeoutMs: CREATE_MS,
    },
  );
  const { stdout } = await kind(["get", "nodes", `--name=${NAME}`]);
  const names = stdout.split("\n").filter(Boolean).sort();
  const nodes = await Promise.all(names.map((name) => describeNode(docker, name, wanted.families)));
  const controlPlane = nodes.find(({ name }) => name.endsWith("-control-plane"));
  if (controlPlane === undefined) throw new Error(`kind made no control plane: ${names.join(", ")}`);
  return {
    nodes: [controlPlane, ...nodes.filter((node) => node !== controlPlane)],
    controlPlane,
    kubeconfig,
    kubectl: (args, options) =>
      controlPlane.exec(["kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", ...args], options),
    loadImage: async (archive) => {
      await kind(["load", "image-archive", `--name=${NAME}`, archive], { timeoutMs: LOAD_MS });
    },
  };
}

function networkArgs(families: readonly IPFamily[]): readonly string[] {
  const ranges = families.flatMap((family) => {
    const gateway = fabricAddress[family];
    return [
      `--subnet=${gateway.replace(/1$/, "0").replace("::0", "::")}/${prefixLength[family]}`,
      `--gateway=${gateway}`,
    ];
  });
  const ipv6 = families.includes("IPv6") ? ["--ipv6"] : [];
  const bridge = `com.docker.network.bridge.name=${BRIDGE}`;
  return ["network", "create", "--driver=bridge", ...ipv6, ...ranges, `--opt=${bridge}`, NETWORK];
}

type Docker = (args: readonly string[], options?: RunOptions) => Promise<RunResult>;

async function describeNode(docker: Docker, name: string, families: readonly IPFamily[]): Promise<KindNode> {
  const { stdout } = await docker(["inspect", name]);
  const [inspected]: readonly Inspected[] = JSON.parse(stdout);
  const network = inspected?.NetworkSettings.Networks[NETWORK];
  if (inspected === undefined || network === undefined) throw new Error(`${name} is not in the network of the cluster`);
  const all = { IPv4: network.IPAddress, IPv6: network.GlobalIPv6Address };
  return {
    name,
    addresses: Object.fromEntries(families.map((family) => [family, all[family]])),
    ...(await containerNetwork(inspected.Id)),
    exec: (argv, options) => docker(["exec", ...(options?.input === undefined ? [] : ["-i"]), name, ...argv], options),
  };
}

/** What is read of `docker inspect`. */
interface Inspected {
  readonly Id: string;
  readonly NetworkSettings: {
    readonly Networks: Readonly<Record<string, { readonly IPAddress: string; readonly GlobalIPv6Address: string }>>;
  };
}
