import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import type { Argv, RunOptions, RunResult } from "@fairlead/kernel";
import { messageOf } from "../../support/errors.ts";
import { FABRIC_ADDRESS, PREFIX_LENGTH, SERVICE_CIDRS as serviceRange } from "../netns/addresses.ts";
import { rejectAtTheEnd } from "../netns/ground.ts";
import type { ClusterImages } from "./cluster-images.ts";
import { type ContainerNetwork, containerNetwork } from "./containers.ts";
import { type KindSettings, kindConfig } from "./kind-config.ts";
import type { Machine } from "./machine.ts";

/** A cluster as kind makes it: nodes that wait for a pod network, and a control plane that answers. */
export interface KindCluster {
  /** The control plane's first. */
  readonly nodes: readonly KindNode[];
  readonly controlPlane: KindNode;
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

const NAME_FLAG = "--name=fairlead";
const NETWORK = "fairlead-e2e";
const BRIDGE = "br0";
const CREATE_MS = 15 * 60_000;
const LOAD_MS = 5 * 60_000;

export type NewCluster = Pick<KindSettings, "families" | "workers" | "podCIDRs" | "mounts">;

/** @throws Error with what kind said, and the last words of its nodes */
export async function createKindCluster(
  machine: Machine,
  images: ClusterImages,
  wanted: NewCluster,
  folder: string,
): Promise<KindCluster> {
  const { docker, kind } = toolsOf(machine, images.programs.kind);
  await rejectAtTheEnd(machine.network.runner, wanted.families);
  await docker(images.node.taken, { timeoutMs: LOAD_MS });
  await docker(networkArgs(wanted.families));
  const config = join(folder, "kind.json");
  const serviceCIDRs = wanted.families.map((family) => serviceRange[family]);
  const { containerdPatches = [] } = images;
  const mounts = [...wanted.mounts, ...images.mounts];
  await writeFile(config, kindConfig({ ...wanted, containerdPatches, mounts, serviceCIDRs }));
  const files = [`--config=${config}`, `--kubeconfig=${join(folder, "kind.kubeconfig")}`];
  const create = ["create", "cluster", NAME_FLAG, `--image=${images.node.name}`, "--retain", ...files];
  await kind(create, { timeoutMs: CREATE_MS }).catch((error) => failedCreation(error, docker));
  const { stdout } = await kind(["get", "nodes", NAME_FLAG]);
  const names = stdout.split("\n").filter(Boolean).sort();
  const nodes = await Promise.all(names.map((name) => describeNode(docker, name, wanted.families)));
  const controlPlane = nodes.find(({ name }) => name.endsWith("-control-plane"));
  if (controlPlane === undefined) throw new Error(`kind made no control plane: ${names.join(", ")}`);
  return {
    nodes: [controlPlane, ...nodes.filter((node) => node !== controlPlane)],
    controlPlane,
    kubectl: (args, options) =>
      controlPlane.exec(["kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", ...args], options),
    loadImage: async (archive) =>
      void (await kind(["load", "image-archive", NAME_FLAG, archive], { timeoutMs: LOAD_MS })),
  };
}

type Tool = (args: readonly string[], options?: RunOptions) => Promise<RunResult>;

function toolsOf({ runner }: Machine, program: string): { readonly docker: Tool; readonly kind: Tool } {
  return {
    docker: (args, options) => runner.run(["docker", ...args], options),
    kind: (args, options) =>
      runner.run(["env", `KIND_EXPERIMENTAL_DOCKER_NETWORK=${NETWORK}`, program, ...args], options),
  };
}

/** Nodes that end at once are what kind tells least about. */
async function failedCreation(error: unknown, docker: Tool): Promise<never> {
  const { stdout } = await docker(["ps", "--all", "--format={{.Names}}"]);
  const names = stdout.split("\n").filter(Boolean);
  const logs = await Promise.all(
    names.map(
      async (name) =>
        `${name}:\n${await docker(["logs", "--tail=20", name]).then((reported) => reported.stdout, messageOf)}`,
    ),
  );
  throw new Error([messageOf(error), ...logs].join("\n"), { cause: error });
}

function networkArgs(families: readonly IPFamily[]): readonly string[] {
  const ranges = families.flatMap((family) => {
    const gateway = FABRIC_ADDRESS[family];
    return [
      `--subnet=${gateway.replace(/1$/, "0").replace("::0", "::")}/${PREFIX_LENGTH[family]}`,
      `--gateway=${gateway}`,
    ];
  });
  const ipv6 = families.includes("IPv6") ? ["--ipv6"] : [];
  const bridge = `com.docker.network.bridge.name=${BRIDGE}`;
  return ["network", "create", "--driver=bridge", ...ipv6, ...ranges, `--opt=${bridge}`, NETWORK];
}

async function describeNode(docker: Tool, name: string, families: readonly IPFamily[]): Promise<KindNode> {
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
