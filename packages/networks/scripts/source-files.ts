import { NAMESPACES, type ResourceRef, sourceKinds } from "../src/index.ts";

/** A file that says the same as the sources' rows, and how they have it. */
interface SourceFile {
  /** From the root of the repository. */
  readonly path: string;
  /** The text with what follows from the sources as it should be. */
  readonly rewritten: (text: string) => string;
}

const NAMES = Object.keys(sourceKinds);

/** `pnpm --filter @fairlead/networks run sources` writes them; a test compares them. */
export const SOURCE_FILES: readonly SourceFile[] = [
  {
    path: "packages/config/src/cidr-source-names.ts",
    rewritten: (text) => between(text, "[", "] as const", `\n${NAMES.map((name) => `  "${name}",\n`).join("")}`),
  },
  {
    path: "deploy/helm/fairlead/values.schema.json",
    rewritten: (text) =>
      between(
        text,
        '"source": {\n      "enum": [',
        "]",
        `\n${NAMES.map((name) => `        "${name}"`).join(",\n")}\n      `,
      ),
  },
  {
    path: "deploy/helm/fairlead/templates/_networks.tpl",
    rewritten: (text) =>
      between(
        text,
        '{{- define "fairlead.networkRules" -}}\n',
        "{{- end -}}",
        Object.entries(sourceKinds)
          .map(([name, { resources }]) => `${name}: [${rulesFor(resources).map(inline).join(", ")}]\n`)
          .join(""),
      ),
  },
  {
    path: "deploy/components/networks/clusterrole.yaml",
    rewritten: (text) => between(text, "rules:\n", undefined, roleRules()),
  },
];

/** @param end undefined: the end of the text */
function between(text: string, start: string, end: string | undefined, content: string): string {
  const from = text.indexOf(start) + start.length;
  const to = end === undefined ? text.length : text.indexOf(end, from);
  if (from < start.length || to < 0) throw new Error(`there is no ${JSON.stringify(start)} … ${JSON.stringify(end)}`);
  return text.slice(0, from) + content + text.slice(to);
}

interface Rule {
  readonly groups: readonly string[];
  readonly plurals: readonly string[];
  readonly names: readonly string[];
}

/** What a role has to let an agent read; system:node-proxier has Nodes. Groups with the same resources share a rule. */
function rulesFor(resources: readonly ResourceRef[]): readonly Rule[] {
  const byGroup = new Map<string, Rule>();
  for (const { group, plural, only } of resources) {
    if (plural === "nodes") continue;
    const names = only === undefined ? [] : [only.name];
    const key = `${group} ${names.join()}`;
    const plurals = new Set([...(byGroup.get(key)?.plurals ?? []), plural]);
    byGroup.set(key, { groups: [group], plurals: [...plurals].sort(), names });
  }
  const merged = Map.groupBy(byGroup.values(), ({ plurals, names }) => JSON.stringify([plurals, names]));
  return Array.from(merged.values(), (alike) => ({
    ...(alike[0] ?? { plurals: [], names: [] }),
    groups: alike.flatMap(({ groups }) => groups),
  }));
}

function inline({ groups, plurals, names }: Rule): string {
  const only = names.length === 0 ? "" : `, resourceNames: [${names.join(", ")}]`;
  return `{ apiGroups: [${groupList(groups)}], resources: [${plurals.join(", ")}]${only} }`;
}

function groupList(groups: readonly string[]): string {
  return groups.map((group) => (group === "" ? '""' : group)).join(", ");
}

/** By source, but for sources of one group, which share a rule. */
function roleRules(): string {
  const kinds = Object.values(sourceKinds);
  const groups = [...new Set(kinds.flatMap(({ resources }) => resources.map(({ group }) => group)))];
  const sharing = new Map(groups.map((group) => [group, kinds.filter((kind) => asks(kind.resources, group))]));
  const seen = new Set<string>();
  const rules = kinds.flatMap(({ resources }) => {
    const all = resources.flatMap(({ group }) => (sharing.get(group) ?? []).flatMap((kind) => [...kind.resources]));
    return rulesFor(all).filter((rule) => {
      const key = inline(rule);
      return seen.has(key) ? false : seen.add(key);
    });
  });
  const labels = "  # Rules for services that ask for labels of namespaces (multiCNI.serviceRules).\n";
  return `${rules.map(block).join("")}${labels}${rulesFor([NAMESPACES]).map(block).join("")}`;
}

function asks(resources: readonly ResourceRef[], group: string): boolean {
  return resources.some((one) => one.group === group);
}

function block({ groups, plurals, names }: Rule): string {
  const only = names.length === 0 ? "" : `    resourceNames: [${names.join(", ")}]\n`;
  return `  - apiGroups: [${groupList(groups)}]\n    resources: [${plurals.join(", ")}]\n${only}    verbs: [list, watch]\n`;
}
