/** Pod networks that are installed by a manifest. */

import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { IPFamily } from "@fairlead/core";
import { createRunner, type RunOptions } from "@fairlead/kernel";
import { parseAllDocuments } from "yaml";
import { toolPackages } from "../../../../kind/versions.ts";
import { BRIDGED_IS_SEEN } from "../../../cni/bridge-plugin.ts";
import type { CniFlavor, PodNetwork } from "../../../cni/flavor.ts";
import type { ApiClient } from "../../../control-plane/api-client.ts";
import { PORT } from "../../../control-plane/control-plane.ts";
import { cacheFolder, providePrograms } from "../../../control-plane/programs.ts";
import { isThere } from "../../../support/machine.ts";
import { applySettings } from "../../../wire.ts";
import type { Progress } from "../../provider.ts";
import { buildImages } from "../component-images.ts";
import { type ClusterImages, type KindCluster, rolledOut } from "../kind-cluster.ts";
import { fingerprint, flannel as flannelSet, type Machine } from "../machine.ts";
import { debianRoot, rootFile } from "../node-image.ts";

/** What a pod network is given to set itself up with. */
export interface KindNetworkGround {
  readonly cluster: KindCluster;
  readonly flavor: CniFlavor;
  readonly families: readonly IPFamily[];
  readonly kubernetes: string;
  readonly machine: Machine;
  readonly api: ApiClient;
  /** A folder of its own on this machine. */
  readonly folder: string;
  /** The same folder on every node. */
  readonly nodeFolder: string;
  /** `/etc/cni/net.d` for the network of every pod that does not say; else a folder that its runtime class names. */
  readonly configFolder: string;
  readonly progress: Progress;
}

/** A pod network that works. */
export type KindNetwork = Pick<PodNetwork, "state" | "followServices">;

const HOST_PORTS = { type: "portmap", capabilities: { portMappings: true } } as const;

/** Has a node connect pods by a CNI plugin, with the host ports that containers name. */
export async function writeConfig(
  node: Pick<KindCluster["controlPlane"], "exec">,
  folder: string,
  name: string,
  plugin: Readonly<Record<string, unknown>>,
): Promise<void> {
  const file = `${folder}/10-${name}.conflist`;
  const config = { cniVersion: "1.0.0", name, plugins: [plugin, HOST_PORTS] };
  await node.exec(["sh", "-c", 'mkdir -p "$(dirname "$1")" && cat >"$1.part" && mv "$1.part" "$1"', "sh", file], {
    input: JSON.stringify(config),
  });
}

/** An image of Debian packages, made here. */
interface NetworkImage {
  /** Of the image, and a part of the names of files that are kept. */
  readonly name: string;
  readonly packages: readonly string[];
  /** Paths in the image → programs of this machine. */
  readonly files?: Readonly<Record<string, string>>;
  /** Of the packages' root file system, when another image has the same; default: `name`. */
  readonly root?: string;
}

/** As manifests name it. */
export function imageName({ name }: Pick<NetworkImage, "name">): string {
  return `localhost/${name}:made-here`;
}

/** @returns the archive, as it is kept by what it is made of */
export async function networkImage(image: NetworkImage, progress: Progress): Promise<string> {
  const { name, packages, files = {}, root = name } = image;
  const folder = cacheFolder("kind-networks");
  const file = join(folder, `${name}-${fingerprint([packages, files])}.tar`);
  if (await isThere(file)) return file;
  progress(`making the image of ${name} (once)`);
  await mkdir(folder, { recursive: true });
  const runner = createRunner();
  const tar = rootFile(root, packages);
  await debianRoot(runner, packages, tar);
  await buildImages(runner, [{ names: [imageName(image)], parts: ["tools", files] }], tar, file);
  return file;
}

/** An object of a pod network's manifest; only what is looked at has a type. */
export interface NetworkObject {
  readonly kind: string;
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: { readonly template?: { readonly spec: NetworkPod } };
}

/** What a cluster's own values are. */
export interface NetworkSettings {
  readonly podCIDRs: Readonly<Partial<Record<IPFamily, string>>>;
  readonly families: readonly IPFamily[];
  /** Where containerd looks for the network's configuration. */
  readonly configFolder: string;
  /** The API server's own address: its Service address works when Fairlead does. */
  readonly apiServer: { readonly host: string; readonly port: number };
}

/** Container → variables that it gets, in place of what the manifest says of them. */
export type Variables = Readonly<Record<string, Readonly<Record<string, string>>>>;

const FLANNEL = "net-conf.json";

/** What a cluster's own values make of the objects of a manifest. */
export function settled(
  objects: readonly NetworkObject[],
  settings: NetworkSettings,
  variables: Variables = {},
): readonly NetworkObject[] {
  return objects.map((object) => {
    const { data, spec } = object;
    const network = data?.[FLANNEL];
    if (network !== undefined) return { ...object, data: { ...data, [FLANNEL]: flannelNetwork(network, settings) } };
    if (spec?.template === undefined || object.kind !== "DaemonSet") return object;
    const pod = settledPod(spec.template.spec, settings, variables);
    return { ...object, spec: { ...spec, template: { ...spec.template, spec: pod } } };
  });
}

/** The images that objects name, each once. */
export function imagesOf(objects: readonly NetworkObject[]): readonly string[] {
  const pods = objects.flatMap(({ spec }) => (spec?.template === undefined ? [] : [spec.template.spec]));
  const containers = pods.flatMap(({ containers, initContainers = [] }) => [...containers, ...initContainers]);
  return [...new Set(containers.map(({ image }) => image))];
}

export const READY: RunOptions = { timeoutMs: 320_000 };

export function settingsOf({ cluster, flavor, families, configFolder }: KindNetworkGround): NetworkSettings {
  const host = Object.values(cluster.controlPlane.addresses)[0] ?? "";
  return { podCIDRs: flavor.podCIDRs, families, configFolder, apiServer: { host, port: PORT } };
}

/** Empty documents are left out. */
export function objectsIn(text: string): readonly NetworkObject[] {
  const objects = parseAllDocuments(text).map((one): NetworkObject | null => one.toJS());
  return objects.filter((one) => one !== null);
}

/** The DaemonSet of a network's pods. */
interface NetworkPods {
  readonly namespace: string;
  readonly daemonSet: string;
}

/** Resolves when the DaemonSet runs on every node. */
export async function applyManifest(
  { cluster }: KindNetworkGround,
  objects: readonly NetworkObject[],
  { namespace, daemonSet }: NetworkPods,
): Promise<void> {
  const input = objects.map((one) => JSON.stringify(one)).join("\n---\n");
  // Definitions of resources are too large for the annotation of an apply by the client.
  await cluster.kubectl(["apply", "--server-side", "-f", "-"], { input });
  await rolledOut(cluster, daemonSet, namespace);
}

export function logsOf({ cluster }: KindNetworkGround, { namespace, daemonSet }: NetworkPods): KindNetwork {
  return {
    state: async () => {
      const { stdout } = await cluster.kubectl(["-n", namespace, "logs", `daemonset/${daemonSet}`, "--all-pods"]);
      return { [`${daemonSet}.log`]: stdout };
    },
  };
}

const manifest = fileURLToPath(new URL("../../../../kind/flannel.yaml", import.meta.url));
const PODS = { namespace: "kube-system", daemonSet: "flannel" };

/** flannel itself, as a DaemonSet; `backend`: how packets get to another node. */
export function flannel(backend: "vxlan" | "host-gw") {
  return async (ground: KindNetworkGround): Promise<KindNetwork> => {
    const { cluster, kubernetes, progress } = ground;
    const programs = await providePrograms(flannelSet, kubernetes, progress);
    const files = { "usr/local/bin/flanneld": programs.flanneld, "usr/local/bin/flannel": programs.flannel };
    const image = { name: "flannel", packages: toolPackages, root: "tools", files };
    await cluster.loadImage(await networkImage(image, progress));
    await Promise.all(cluster.nodes.map((node) => applySettings(node.runner, BRIDGED_IS_SEEN)));
    const text = (await readFile(manifest, "utf8")).replace("@BACKEND@", backend);
    await applyManifest(ground, settled(objectsIn(text), settingsOf(ground)), PODS);
    return logsOf(ground, PODS);
  };
}

interface NetworkPod {
  readonly containers: readonly NetworkContainer[];
  readonly initContainers?: readonly NetworkContainer[];
  readonly volumes?: readonly { readonly hostPath?: { readonly path: string } }[];
}

interface NetworkContainer {
  readonly name: string;
  readonly image: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

const CONFIG_FOLDER = "/etc/cni/net.d";

function settledPod(pod: NetworkPod, { apiServer, configFolder }: NetworkSettings, variables: Variables): NetworkPod {
  const { host, port } = apiServer;
  const everywhere = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: String(port) };
  const withVariables = (one: NetworkContainer) => {
    const wanted = new Map(Object.entries({ ...everywhere, ...variables[one.name] }));
    const others = (one.env ?? []).filter(({ name }) => !wanted.has(name));
    return { ...one, env: [...others, ...[...wanted].map(([name, value]) => ({ name, value }))] };
  };
  const { containers, initContainers = [], volumes = [] } = pod;
  return {
    ...pod,
    containers: containers.map(withVariables),
    initContainers: initContainers.map(withVariables),
    volumes: volumes.map((volume) => {
      const { hostPath } = volume;
      return hostPath?.path === CONFIG_FOLDER ? { ...volume, hostPath: { ...hostPath, path: configFolder } } : volume;
    }),
  };
}

function flannelNetwork(text: string, { podCIDRs, families }: NetworkSettings): string {
  const ipv6 = families.includes("IPv6") ? { EnableIPv6: true, IPv6Network: podCIDRs.IPv6 } : {};
  return JSON.stringify({ ...JSON.parse(text), Network: podCIDRs.IPv4, ...ipv6 });
}

/** Where a cluster's images and pod networks come from: made here, or published. */
export interface Source {
  /** @throws Error that says what could not be had */
  images(kubernetes: string, progress: Progress): Promise<ClusterImages>;
  /** How each pod network is set up, by its name in --cni. */
  readonly installers: Readonly<Record<string, NetworkInstaller>>;
}

/** Resolves when the network's configuration is on every node. */
export type NetworkInstaller = (ground: KindNetworkGround, opened: AsyncDisposableStack) => Promise<KindNetwork>;
