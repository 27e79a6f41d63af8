/** MetalLB, and the Gateway API with its controller, on a cluster of kind: of Go modules and their own manifests. */

import { mkdir, readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import { createRunner, type Runner } from "@fairlead/kernel";
import {
  COREDNS_FOR_GATEWAYS,
  ECHO_TAGS,
  METALLB_TAG,
  MODULE_MANIFESTS,
  toolPackages,
} from "../../../kind/versions.ts";
import { cacheFolder, providePrograms } from "../../control-plane/programs.ts";
import { isThere } from "../../support/machine.ts";
import { waitUntil } from "../../support/wait-until.ts";
import type { Progress } from "../provider.ts";
import { buildImages, type LocalImage } from "./component-images.ts";
import { overlayManifests } from "./fairlead.ts";
import { type KindCluster, PATIENCE_MS, rolledOut } from "./kind-cluster.ts";
import { cluster as clusterSet, fingerprint, gatewaySuite, metallb } from "./machine.ts";
import { moduleFolder, rootFile } from "./node-image.ts";

interface Ground {
  readonly cluster: KindCluster;
  readonly families: readonly IPFamily[];
  readonly kubernetes: string;
  /** The program. */
  readonly kubectl: string;
  readonly progress: Progress;
}

/** Addresses of the nodes' own network that no node has. */
const LOAD_BALANCER_RANGE: Readonly<Record<IPFamily, string>> = {
  IPv4: "172.30.0.200-172.30.0.249",
  IPv6: "fd00:30::200-fd00:30::249",
};

const METALLB_NAMESPACE = "metallb-system";

/** Puts MetalLB's controller and speakers on the cluster, in layer-2 mode. Resolves when it gives addresses. */
export async function addMetalLB(ground: Ground): Promise<void> {
  const { cluster, families, kubernetes, progress } = ground;
  const programs = await providePrograms(metallb, kubernetes, progress);
  const images = Object.entries(programs).map(([name, file]) => ({
    names: [`quay.io/metallb/${name}:${METALLB_TAG}`],
    parts: [{ [name]: file }],
    entrypoint: [`/${name}`],
  }));
  await cluster.loadImage(await archiveOf("metallb", images, progress));
  await apply(cluster, await manifestsOf(createRunner(), MODULE_MANIFESTS.metallb));
  await deployed(cluster, METALLB_NAMESPACE, "controller");
  await rolledOut(cluster, "speaker", METALLB_NAMESPACE);
  const object = (kind: string, name: string, spec: object) =>
    JSON.stringify({ apiVersion: "metallb.io/v1beta1", kind, metadata: { name, namespace: METALLB_NAMESPACE }, spec });
  const addresses = families.map((family) => LOAD_BALANCER_RANGE[family]);
  const settings = [object("IPAddressPool", "nodes", { addresses }), object("L2Advertisement", "nodes", {})];
  // Its webhook is asked through a Service, which is there a moment later.
  const taken = () =>
    apply(cluster, settings.join("\n---\n")).then(
      () => true,
      () => undefined,
    );
  await waitUntil("MetalLB's webhook", PATIENCE_MS, taken, 1_000);
  progress("MetalLB gives addresses");
}

/** Puts the Gateway API's resources on the cluster, and the controller of Gateways as its users do. */
export async function addGateways({ cluster, kubernetes, kubectl, progress }: Ground): Promise<void> {
  const { coredns } = await providePrograms(clusterSet, kubernetes, progress);
  const echo = (await providePrograms(gatewaySuite, kubernetes, progress))["echo-basic"];
  const images = [
    {
      names: ECHO_TAGS.map((tag) => `registry.k8s.io/gateway-api/echo-basic:${tag}`),
      parts: [{ "echo-basic": echo }],
      entrypoint: ["/echo-basic"],
    },
    { names: [COREDNS_FOR_GATEWAYS], parts: [{ coredns }], entrypoint: ["/coredns"] },
  ];
  await cluster.loadImage(await archiveOf("gateways", images, progress));
  await apply(cluster, await manifestsOf(createRunner(), MODULE_MANIFESTS.gatewayAPI));
  const manifests = await overlayManifests(createRunner(), kubectl, "gateways");
  await apply(cluster, manifests.map((one) => JSON.stringify(one)).join("\n---\n"));
  await deployed(cluster, "kube-system", "fairlead-controller");
  progress("the controller of Gateways runs");
}

/** An archive of images, kept by what they are made of. */
async function archiveOf(name: string, images: readonly LocalImage[], progress: Progress): Promise<string> {
  const file = join(cacheFolder("kind-networks"), `${name}-${fingerprint(images)}.tar`);
  if (await isThere(file)) return file;
  progress(`making the images of ${name} (once)`);
  await mkdir(dirname(file), { recursive: true });
  await buildImages(createRunner(), images, rootFile("tools", toolPackages), file);
  return file;
}

/** The text of a file, or of all files of a folder, of a Go module. */
async function manifestsOf(
  runner: Runner,
  { module, path }: (typeof MODULE_MANIFESTS)[keyof typeof MODULE_MANIFESTS],
): Promise<string> {
  const at = join(await moduleFolder(runner, module), path);
  const isFolder = (await stat(at)).isDirectory();
  const names = isFolder ? (await readdir(at)).filter((name) => /^[^_].*\.yaml$/.test(name) && name !== KUSTOMIZE) : [];
  const files = isFolder ? names.sort().map((name) => join(at, name)) : [at];
  return (await Promise.all(files.map((file) => readFile(file, "utf8")))).join("\n---\n");
}

const KUSTOMIZE = "kustomization.yaml";

/** Definitions of resources are too large for the annotation of an apply by the client. */
async function apply({ kubectl }: KindCluster, input: string): Promise<void> {
  await kubectl(["apply", "--server-side", "-f", "-"], { input });
}

async function deployed({ kubectl }: KindCluster, namespace: string, name: string): Promise<void> {
  const of = [`--namespace=${namespace}`, `deployment/${name}`, `--timeout=${PATIENCE_MS / 1000}s`];
  await kubectl(["rollout", "status", ...of], { timeoutMs: PATIENCE_MS });
}
