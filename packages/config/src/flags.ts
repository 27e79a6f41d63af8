/** The flags of the agent, as the table of the configuration has them, and what they say. */
import type { RawObject } from "@fairlead/base";
import type { FlagDefinition, GivenFlags, Program } from "./command-line.ts";
import { withValueAt } from "./paths.ts";
import { showValue } from "./report.ts";
import { fairleadSchema } from "./table/fairlead.ts";
import { kubeProxySchema } from "./table/kube-proxy.ts";
import { OPTIONS } from "./table/options.ts";
import { type FieldRow, fieldsOf, GROUPS, type OptionRow } from "./table/row.ts";
import type { ConfigError, Platform } from "./types.ts";

/** A flag with the fields that it sets; none: an option of the command line only. */
export interface Flag extends FlagDefinition {
  readonly document: "kubeProxy" | "fairlead" | "options";
  readonly fields: readonly string[];
  /** Counts although --config is given. */
  readonly withConfig: boolean;
  /** Its row; of several fields that of the first. */
  readonly row: FieldRow | OptionRow;
}

/** Every flag of kube-proxy v1.37 with its name, type and default, and Fairlead's own. */
export const FLAGS: ReadonlyMap<string, Flag> = new Map(
  [
    ...fieldFlags("kubeProxy", fieldsOf(kubeProxySchema)),
    ...fieldFlags("fairlead", fieldsOf(fairleadSchema)),
    ...Object.entries<OptionRow>(OPTIONS).map(([name, row]) => flagOf(name, "options", [], row)),
  ].map((flag) => [flag.name, flag]),
);

export const PROXY: Program = {
  name: "fairlead-proxy",
  description:
    "Kubernetes service proxy for clusters with more than one pod network; a drop-in for kube-proxy.\n" +
    "With --config, only the flags marked * take effect.",
  groups: Object.entries(GROUPS).map(([group, title]) => ({
    title,
    flags: [...FLAGS.values()].filter((flag) => flag.row.group === group),
  })),
};

/** What the flags say, in the form of the configuration documents, so that one schema reads flags and files. */
export interface FlagDocuments {
  readonly kubeProxy: RawObject;
  readonly fairlead: RawObject;
  /** Flags that set no field of a document, by name: texts, true or false, numbers. */
  readonly options: RawObject;
  /** Path of a field → `--flag` that set it. */
  readonly names: Readonly<Record<string, string>>;
  readonly errors: readonly ConfigError[];
}

export function flagDocuments(given: GivenFlags, platform: Platform = "linux"): FlagDocuments {
  const documents = { kubeProxy: {} as RawObject, fairlead: {} as RawObject, options: {} as RawObject };
  const names: Record<string, string> = {};
  const errors: ConfigError[] = [];
  for (const [name, texts] of given) {
    const flag = FLAGS.get(name);
    if (flag === undefined) continue;
    const refused = flag.row.group === "windows" && platform === "linux";
    const read = refused ? { problem: "only works on Windows; remove it" } : flag.type.read(texts);
    if ("problem" in read) {
      errors.push({ field: `--${name}`, value: showValue(texts.at(-1)), message: read.problem });
      continue;
    }
    if (read.value === "") continue;
    const { document, fields } = flag;
    if (document === "options") documents.options = { ...documents.options, [name]: read.value };
    for (const path of fields) {
      documents[document] = withValueAt(documents[document], path, read.value);
      names[path] = `--${name}`;
    }
  }
  return { ...documents, names, errors };
}

/** Those of `given` that --config does not leave without meaning, and the names of the others. */
export function splitByConfig(given: GivenFlags): { readonly kept: GivenFlags; readonly ignored: readonly string[] } {
  const counts = ([name]: readonly [string, unknown]) => FLAGS.get(name)?.withConfig === true;
  const entries = [...given];
  return {
    kept: new Map(entries.filter(counts)),
    ignored: entries.filter((entry) => !counts(entry)).map(([name]) => `--${name}`),
  };
}

export function deprecations(given: GivenFlags): string[] {
  return Array.from(given.keys()).flatMap((name) => {
    const deprecated = FLAGS.get(name)?.row.deprecated;
    return deprecated === undefined ? [] : [`--${name} is deprecated: use ${deprecated}`];
  });
}

/** Every flag that may be set, with its value on the command line or its default: what kube-proxy serves at /flagz. */
export function flagValues(given: GivenFlags, platform: Platform = "linux"): Record<string, string> {
  const shown = [...FLAGS.values()].filter(({ row }) => row.group !== "windows" || platform === "windows");
  return Object.fromEntries(shown.map((flag) => [flag.name, flagText(flag, given.get(flag.name))]));
}

/** Values of flags without a default of their own, by type, as pflag prints them. */
const ZERO: Readonly<Record<string, string>> = { "": "false", int32: "0", float32: "0", duration: "0s", Level: "0" };

function flagText({ type, default: unset }: Flag, texts: readonly string[] | undefined): string {
  const all = (texts ?? []).map(withoutPassword);
  if (type.placeholder === "strings") return `[${all.join(",")}]`;
  const text = type.placeholder === "mapStringBool" ? all.join(",") : (all.at(-1) ?? "");
  return text === "" ? (unset ?? ZERO[type.placeholder] ?? "") : text;
}

/** Of a URL, such as that of --master. */
function withoutPassword(text: string): string {
  return text.replace(/^(https?:\/\/)[^/@]*@/, "$1");
}

function fieldFlags(document: Flag["document"], fields: ReturnType<typeof fieldsOf>): readonly Flag[] {
  const byName = Map.groupBy(fields, ({ flag = "" }) => flag);
  return Array.from(byName, ([name, rows]) => ({ name, rows })).flatMap(({ name, rows }) => {
    const [row] = rows;
    if (row === undefined || name === "") return [];
    return [
      flagOf(
        name,
        document,
        rows.map(({ path }) => path),
        row,
      ),
    ];
  });
}

function flagOf(name: string, document: Flag["document"], fields: readonly string[], row: FieldRow | OptionRow): Flag {
  const { type, help = "", withConfig = false } = row;
  if (type === undefined) throw new Error(`--${name} has no type`);
  const counts = withConfig || document === "fairlead";
  return {
    name,
    type,
    help: `${counts ? "* " : ""}${help}`,
    default: row.default,
    hidden: row.group === "windows" || row.deprecated !== undefined,
    document,
    fields,
    withConfig: counts,
    row,
  };
}
