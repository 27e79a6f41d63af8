import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type ApiObject, objectPath } from "@fairlead/lab/control-plane/api-client";
import type { AgentStart, ClusterNode, ClusterShape } from "@fairlead/lab/provider/cluster";
import { parse, parseAllDocuments } from "yaml";
import { expectAnswers } from "../expect.ts";
import { each, restoreAgents } from "../faults/stage.ts";
import {
  endpointAt,
  expectForeign,
  expectNoTrace,
  type LearnedNetworks,
  needsExcluded,
  ownershipPages,
} from "../multi-cni/untouched.ts";
import { nearAndFar, needs, notIn, onlyIPv4, type Scene } from "../spec.ts";

const component = new URL("../../../../deploy/components/networks/", import.meta.url);
const role = fileURLToPath(new URL("clusterrole.yaml", component));

/** The agents of namespaces, and those of a DaemonSet. */
const AGENTS = [
  { apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "system:kube-proxy" },
  { kind: "ServiceAccount", name: "fairlead", namespace: "kube-system" },
];

const consentRole = fileURLToPath(new URL("consent-role.yaml", component));

/**
 * What agents need to read networks' objects with.
 *
 * @param without a resource that the role does not have
 * @returns what takes it away
 */
export async function allow(scene: Scene, without?: string): Promise<() => Promise<void>> {
  const clusterRole: Role = parse(await readFile(role, "utf8"));
  for (const rule of clusterRole.rules) rule.resources = rule.resources.filter((plural) => plural !== without);
  const binding = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: clusterRole.metadata.name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: clusterRole.metadata.name },
    subjects: AGENTS,
  };
  const consent: readonly ApiObject[] = parseAllDocuments(await readFile(consentRole, "utf8")).map((one) => one.toJS());
  const bound = consent.map((one) => (one.kind === "RoleBinding" ? { ...one, subjects: AGENTS } : one));
  const removals: (() => Promise<void>)[] = [];
  for (const one of [clusterRole, binding, ...bound]) removals.push(await make(scene, one));
  return async () => void (await Promise.all(removals.map((remove) => remove())));
}

/** Makes an object that goes with the spec. @returns what takes it away before */
export async function make(scene: Scene, object: ApiObject): Promise<() => Promise<void>> {
  const { api } = scene.cluster;
  const path = objectPath(object);
  const remove = () => api.delete(path);
  scene.later(remove);
  await api.create(object);
  return remove;
}

/** Installs a resource, and waits until the API server serves it. @returns what takes it away, with all its objects */
export async function install(scene: Scene, definition: ApiObject): Promise<() => Promise<void>> {
  const { api } = scene.cluster;
  const path = objectPath(definition);
  // What goes before, with its objects, takes a moment to go.
  await scene.until(`${definition.metadata.name} to be gone`, () => notThere(scene, path));
  const remove = await make(scene, definition);
  await scene.until(`${definition.metadata.name} to be served`, async () => {
    const { status }: Served = JSON.parse(JSON.stringify(await api.get(path)));
    const established = status?.conditions?.some(({ type, status }) => type === "Established" && status === "True");
    return established === true ? undefined : "not established";
  });
  return async () => {
    await remove();
    await scene.until(`${definition.metadata.name} to be gone`, () => notThere(scene, path));
  };
}

type Start = (node: ClusterNode) => Promise<void>;

/**
 * Every agent learns its networks from now on, knowing nothing of before, and is as ever after the spec.
 *
 * @returns starts one anew, which knows what it has learned
 */
export function learnFrom(scene: Scene, ...flags: readonly string[]): Promise<Start> {
  return learnBy(scene, { flags });
}

/** The same, with flags or by the configuration file. */
export async function learnBy(scene: Scene, how: Pick<AgentStart, "flags" | "multiCNI">): Promise<Start> {
  restoreAgents(scene);
  const start = ({ agent }: ClusterNode) => agent.restart({ learns: true, memory: scene.namespace, ...how });
  await each(scene, start);
  return start;
}

/** @param vpc its VPC; undefined: it names none */
export function subnet(name: string, cidrBlock: string, vpc?: string): ApiObject {
  return { apiVersion: "kubeovn.io/v1", kind: "Subnet", metadata: { name }, spec: { cidrBlock, vpc } };
}

export function ipPool(name: string, cidr: string): ApiObject {
  return { apiVersion: "crd.projectcalico.org/v1", kind: "IPPool", metadata: { name }, spec: { cidr } };
}

/** A Vpc with the status that kube-ovn's controller gives it. */
export async function makeVpc(scene: Scene, name: string, status: unknown): Promise<void> {
  const vpc = { apiVersion: "kubeovn.io/v1", kind: "Vpc", metadata: { name } };
  await make(scene, vpc);
  await scene.cluster.api.patch(`${objectPath(vpc)}/status`, { status });
}

export function accepted(...cidrs: readonly string[]): ApiObject {
  const metadata = { namespace: "kube-system", name: "fairlead-networks" };
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata,
    data: { accepted: JSON.stringify(cidrs.map((cidr) => ({ cidr }))) },
  };
}

const NONE: LearnedNetworks = { sources: [], cidrs: [] };

/** Waits until what every agent has learned is so. */
export async function untilLearned(
  { cluster, until }: Scene,
  what: string,
  complaint: (learned: LearnedNetworks) => string | undefined,
): Promise<void> {
  await until(`${what} on every node`, async () => {
    const learned = (await ownershipPages(cluster)).map(({ networks = NONE }) => networks);
    return learned.map(complaint).find((one) => one !== undefined);
  });
}

export async function untilState(scene: Scene, source: string, state: string): Promise<void> {
  await untilLearned(scene, `${source} to be ${state}`, ({ sources }) => {
    const found = sources.find((one) => one.source === source)?.state;
    return found === state ? undefined : `${found}`;
  });
}

/** @param stage `effective`, `refused` or `held` */
export async function untilStage(scene: Scene, cidr: string, stage: string): Promise<void> {
  await untilLearned(scene, `${cidr} to be ${stage}`, ({ cidrs }) => {
    const found = cidrs.find((one) => one.cidr === cidr)?.stage;
    return found === stage ? undefined : `${found}`;
  });
}

/** For `Spec.unfit`: the spec learns the CIDRs of two networks, in IPv4. */
export function learnsTwo(shape: ClusterShape): string | undefined {
  return needs("learn")(shape) ?? needsExcluded(shape) ?? onlyIPv4("its CIDRs are IPv4")(shape);
}

/** For `Spec.unfit`: the same, and services change hands while clients of both networks call them. */
export function handsOver(shape: ClusterShape): string | undefined {
  const why = "ipvs mode leaves a foreign ClusterIP to its network for all clients";
  return learnsTwo(shape) ?? notIn(["ipvs"], why)(shape);
}

/** Of the network that `openOthers` has an endpoint in. */
export const CIDR = "10.250.0.0/16";
const PORTS = [{ port: 80 }];

/** A service whose endpoint is in a network that no object describes yet, alongside four that are ours. */
export async function openOthers(scene: Scene) {
  const { namespace, cluster } = scene;
  for (const name of ["a", "b", "c"]) await scene.service(name, { ports: PORTS });
  const theirs = await scene.service("theirs", { ports: PORTS });
  await cluster.api.create(endpointAt({ namespace, service: "theirs", family: "IPv4", address: "10.250.0.9" }));
  const { caller, by } = await nearAndFar(scene);
  const ours = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
  const atOurs = { to: ours.clusterIP, port: 80 };
  await expectAnswers(caller, atOurs, { by });
  const foreign = async () => {
    await expectForeign(scene, theirs.name);
    await expectNoTrace(scene, theirs.clusterIP);
  };
  return { caller, atOurs, foreign };
}

interface Role extends ApiObject {
  readonly rules: readonly { resources: string[] }[];
}

interface Served {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

async function notThere({ cluster }: Scene, path: string): Promise<string | undefined> {
  return cluster.api.get(path).then(
    () => "there",
    () => undefined,
  );
}
