import type { RawObject } from "@fairlead/base";
import type { ConfigError } from "../parse-types.ts";
import { withValueAt } from "../paths.ts";
import { showValue } from "../report.ts";
import type { GivenFlags } from "./command-line.ts";
import type { FlagDefinition } from "./definition.ts";
import { FLAGS } from "./table.ts";

/**
 * What the flags say, in the form of the configuration documents, so that one schema reads flags and files.
 */
export interface FlagDocuments {
  readonly kubeProxy: RawObject;
  readonly fairlead: RawObject;
  /** Flags that set no field of a document, by name: texts, true or false, numbers. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Path of a field → `--flag` that set it. */
  readonly names: Readonly<Record<string, string>>;
  readonly errors: readonly ConfigError[];
}

const WINDOWS = "only works on Windows; remove it";

export function flagDocuments(given: GivenFlags): FlagDocuments {
  const documents = { kubeProxy: {} as RawObject, fairlead: {} as RawObject };
  const options: Record<string, unknown> = {};
  const names: Record<string, string> = {};
  const errors: ConfigError[] = [];
  for (const [name, texts] of given) {
    const flag = FLAGS.get(name);
    if (flag === undefined) continue;
    const read = flag.windows === true ? { problem: WINDOWS } : flag.type.read(texts);
    if ("problem" in read) {
      errors.push({ field: `--${name}`, value: showValue(texts.at(-1)), message: read.problem });
      continue;
    }
    if (read.value === "") continue;
    if (flag.fields === undefined) options[name] = read.value;
    for (const path of flag.fields ?? []) {
      const document = flag.document ?? "kubeProxy";
      documents[document] = withValueAt(documents[document], path, read.value);
      names[path] = `--${name}`;
    }
  }
  return { ...documents, options, names, errors };
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
  return [...given.keys()]
    .map((name) => FLAGS.get(name))
    .filter((flag): flag is FlagDefinition & { deprecated: string } => flag?.deprecated !== undefined)
    .map((flag) => `--${flag.name} is deprecated: use ${flag.deprecated}`);
}
