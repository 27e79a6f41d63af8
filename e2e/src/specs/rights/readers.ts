import { readFile } from "node:fs/promises";
import type { ApiClient, ApiObject } from "@fairlead/lab/control-plane/api-client";
import { objectPath } from "@fairlead/lab/control-plane/api-client";
import { parseAllDocuments } from "yaml";
import type { Scene } from "../scene.ts";

/** A user with narrow rights: the roles of deploy/readers, or less. */
export interface Reader {
  /** The user's name, and a column of the table. */
  readonly name: string;
  /** It sees the services of one namespace only, and names it. */
  readonly ofNamespace?: true;
  /** It may not ask the proxies, and gives the configuration itself. */
  readonly configures?: true;
  /** What it has of the roles; a resource that is left out is in none of them. */
  readonly roles: readonly RoleName[];
  readonly without?: string;
}

const FILES = ["cluster-reader", "proxy-reader", "namespace-reader"] as const;
type RoleName =
  | "ClusterRole fairlead-reader"
  | "Role fairlead-reader"
  | "Role fairlead-proxy-reader"
  | "Role fairlead-kernel-reader";

const ALL: readonly RoleName[] = [
  "ClusterRole fairlead-reader",
  "Role fairlead-proxy-reader",
  "Role fairlead-kernel-reader",
];

/** In the order of the table's columns. */
export const READERS: readonly Reader[] = [
  { name: "all roles", roles: ALL },
  { name: "ClusterRole", roles: ["ClusterRole fairlead-reader"], configures: true },
  { name: "no nodes", roles: ALL, without: "nodes" },
  { name: "no portforward", roles: ALL, without: "pods/portforward", configures: true },
  { name: "a namespace", roles: ["Role fairlead-reader"], ofNamespace: true, configures: true },
  { name: "nothing", roles: [], configures: true },
];

/** The name of a reader's user. */
export function userOf({ name }: Reader): string {
  return name.replaceAll(" ", "-").toLowerCase();
}

/** The group that has its rights. */
export function groupOf(reader: Reader): string {
  return `${userOf(reader)}-readers`;
}

interface RoleObject extends ApiObject {
  readonly rules: readonly { readonly resources: readonly string[] }[];
}

/** Gives every reader its rights; they go after the spec. */
export async function giveRights(scene: Scene): Promise<void> {
  const roles = await readRoles();
  for (const reader of READERS) {
    for (const name of reader.roles) {
      const role = roles.get(name);
      if (role === undefined) throw new Error(`deploy/readers has no ${name}`);
      for (const object of objectsFor(reader, role, scene.namespace)) await create(scene, object);
    }
  }
}

async function readRoles(): Promise<ReadonlyMap<string, RoleObject>> {
  const folder = new URL("../../../../deploy/readers/", import.meta.url);
  const texts = await Promise.all(FILES.map((file) => readFile(new URL(`${file}.yaml`, folder), "utf8")));
  // What deploy's own tests check.
  const objects = texts.flatMap((text) => parseAllDocuments(text).map((document): RoleObject => document.toJS()));
  return new Map(objects.map((role) => [`${role.kind} ${role.metadata.name}`, role]));
}

/** A role of the reader's own, and its binding: the ready one, without a resource, or in the spec's namespace. */
function objectsFor(reader: Reader, role: RoleObject, own: string): readonly ApiObject[] {
  const name = `${role.metadata.name}-${userOf(reader)}`;
  const { namespace: written } = role.metadata;
  const namespace = reader.ofNamespace === true ? own : written;
  const metadata = { name, ...(written !== undefined && { namespace }) };
  const rules = role.rules.map((rule) => ({
    ...rule,
    resources: rule.resources.filter((resource) => resource !== reader.without),
  }));
  const { apiVersion, kind } = role;
  return [
    { apiVersion, kind, metadata, rules: rules.filter(({ resources }) => resources.length > 0) },
    {
      apiVersion,
      kind: `${kind}Binding`,
      metadata,
      subjects: [{ kind: "Group", name: groupOf(reader), apiGroup: "rbac.authorization.k8s.io" }],
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name },
    },
  ];
}

async function create(
  { cluster: { api }, later }: { readonly cluster: { readonly api: ApiClient } } & Pick<Scene, "later">,
  object: ApiObject,
) {
  await api.create(object);
  later(() => api.delete(objectPath(object)));
}
