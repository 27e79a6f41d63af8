/** Readers with few rights, the commands that they run, and how these end. */

import { readFile } from "node:fs/promises";
import { type ApiClient, type ApiObject, objectPath } from "@fairlead/lab/control-plane/api-client";
import { parseAllDocuments } from "yaml";
import type { Scene } from "./spec.ts";

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

export function userOf({ name }: Reader): string {
  return name.replaceAll(" ", "-").toLowerCase();
}

export function groupOf(reader: Reader): string {
  return `${userOf(reader)}-readers`;
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

export interface Ground {
  /** Of the spec's service `web`. */
  readonly namespace: string;
  readonly node: string;
  /** A file that is not there yet. */
  readonly file: string;
}

const PLANNED = { takesNamespace: true, takesConfiguration: true } as const;
const CONFIGURED = { takesConfiguration: true } as const;

interface CommandLine {
  readonly argv: (ground: Ground) => readonly string[];
  readonly takesNamespace?: true;
  /** It takes the proxy's configuration as options, and readers that may not ask the proxy give it. */
  readonly takesConfiguration?: true;
}

/** How an administrator asks first, with each command. */
export const COMMAND_LINES: Readonly<Record<string, CommandLine>> = {
  plan: { ...PLANNED, argv: ({ node }) => ["--node", node, "-o", "summary"] },
  explain: { ...PLANNED, argv: ({ namespace, node }) => [`${namespace}/web`, "--node", node] },
  diff: { ...CONFIGURED, argv: ({ node }) => ["cluster", "node", "--on", node, "--traffic-only"] },
  trace: { ...PLANNED, argv: ({ namespace, node }) => ["--from", "pod", "--to", `${namespace}/web`, "--on", node] },
  verify: { ...PLANNED, argv: () => ["--all-nodes"] },
  ownership: { ...PLANNED, argv: ({ node }) => ["--node", node] },
  flows: { ...PLANNED, argv: ({ node }) => ["--on", node] },
  top: { ...PLANNED, argv: ({ node }) => ["--on", node] },
  status: { ...PLANNED, argv: () => ["-o", "wide"] },
  doctor: { ...CONFIGURED, argv: ({ node }) => ["--on", node] },
  sysdump: { ...CONFIGURED, argv: ({ file }) => ["--output-file", file, "--node-timeout", "600"] },
  connectivity: { argv: () => ["--no-update"] },
  console: { ...CONFIGURED, argv: () => ["--no-open"] },
  migrate: { argv: () => [] },
  version: { argv: () => [] },
  completion: { argv: () => ["bash"] },
};

export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface RightsOutcome {
  readonly command: string;
  readonly reader: string;
  readonly code: number;
  /** Rights that the command says it lacks, `list nodes`; sorted. */
  readonly lacks: readonly string[];
  /** What it said first: of what is missing, else an answer. */
  readonly says: string;
}

const MAY_NOT = /user (\S+) may not (\S+) (\S+) (?:in the whole cluster|in namespace (\S+))/g;

/** Rights that what a command printed names; where it failed the one that it failed of. */
export function lackedIn(user: string, { code, out, err }: Ended): readonly string[] {
  const found = Array.from(`${out}\n${err}`.matchAll(MAY_NOT), ([, who, verb, resource]) => {
    if (who !== user) throw new Error(`the rights of ${who} are named, not those of ${user}:\n${err}`);
    // Services and their EndpointSlices are asked for at once: either may be refused first.
    return `${verb} ${resource === "endpointslices" ? "services" : resource}`;
  });
  return [...new Set(code > 1 ? found.slice(-1) : found)].sort();
}

/** Where a user's rights end: the rule that is named. */
const RULE =
  /may not \S+ \S+ (?:in the whole cluster; a ClusterRole|in namespace \S+; a Role) with this rule allows it: \{apiGroups: \[/;

/** What no command may do to a reader, whatever its rights are. Undefined: it did none of it. */
export function complaintOf({ code, out, err }: Ended): string | undefined {
  if (/^ {4}at /m.test(err)) return "a stack";
  if (code === 2) return "the command line is refused";
  if (/ does not answer: 403/.test(err)) return "what is refused is said to be no answer";
  const text = `${err}\n${out}`;
  if (/may not/.test(text) && !RULE.test(text)) return "a missing right without the rule that gives it";
  if (code > 1 && !/may not/.test(text)) return "a failure that names no right";
  return undefined;
}

/** The table of docs/tools.md, a row for commands with the same outcomes. */
export function rightsTable(outcomes: readonly RightsOutcome[]): string {
  const readers = [...new Set(outcomes.map(({ reader }) => reader))];
  const commands = [...new Set(outcomes.map(({ command }) => command))];
  const rows = Map.groupBy(commands, (command) =>
    readers
      .map((reader) => outcomes.find((one) => one.command === command && one.reader === reader))
      .map((one) => (one === undefined ? "-" : cellOf(one)))
      .join(" | "),
  );
  const cells = Array.from(rows, ([ended, alike]) => [alike.map((command) => `\`${command}\``).join(", "), ended]);
  const row = (texts: readonly string[]) => `| ${texts.join(" | ")} |`;
  return [row(["command", ...readers]), row(["---", ...readers.map(() => "---")]), ...cells.map(row)].join("\n");
}

const FILES = ["cluster-reader", "proxy-reader", "namespace-reader"] as const;

interface RoleObject extends ApiObject {
  readonly rules: readonly { readonly resources: readonly string[] }[];
}

async function readRoles(): Promise<ReadonlyMap<string, RoleObject>> {
  const folder = new URL("../../../deploy/readers/", import.meta.url);
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

/** The cell of the table in docs/tools.md. */
function cellOf({ code, lacks }: RightsOutcome): string {
  const names = lacks.map((one) => `\`${one}\``).join(", ");
  if (code > 1) return `no: ${names}`;
  return lacks.length === 0 ? "yes" : `less: ${names}`;
}
