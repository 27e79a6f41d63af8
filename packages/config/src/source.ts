/** Where the configuration's values come from, and the documents of its file. */

import { errorText, isObject, type RawObject, treeProblem } from "@fairlead/base";
import {
  floatCoreTag,
  floatYaml11Tag,
  intYaml11Tag,
  loadAll,
  NOT_RESOLVED,
  type ScalarTagDefinition,
  Schema,
  timestampTag,
  YAML11_SCHEMA,
  YAMLException,
} from "js-yaml";
import type { GivenFlags } from "./command-line.ts";
import { FLAGS, type FlagDocuments, flagDocuments, splitByConfig } from "./flags.ts";
import { joinPath, leafPaths, splitPath, valueAt, withValueAt } from "./paths.ts";
import { type FieldNames, showValue } from "./report.ts";
import * as fairlead from "./table/fairlead.ts";
import * as kubeProxy from "./table/kube-proxy.ts";
import type { ConfigError, ParseEnvironment } from "./types.ts";

/** Where the configuration's values come from: the flags only, or a file and those flags that count alongside it. */
export interface Source {
  readonly origin: "file" | "flags";
  readonly kubeProxy: RawObject;
  readonly fairlead: RawObject;
  readonly configFile?: { readonly path: string; readonly text: string };
  readonly name: FieldNames;
  readonly errors: readonly ConfigError[];
  readonly warnings: readonly string[];
}

export function chooseSource(given: GivenFlags, flags: FlagDocuments, environment: ParseEnvironment): Source {
  const { config: path } = flags.options;
  if (typeof path === "string") return fileSource(path, given, flags, environment);
  const { kubeProxy, fairlead, errors, names } = flags;
  return { origin: "flags", kubeProxy, fairlead, name: namer(names, flagFor), errors, warnings: [] };
}

export function withOverrides(source: Source, { kubeProxy, fairlead, names, errors }: FlagDocuments): Source {
  return {
    ...source,
    kubeProxy: overlay(source.kubeProxy, kubeProxy),
    fairlead: overlay(source.fairlead, fairlead),
    name: namer(names, source.name),
    errors: [...source.errors, ...errors],
  };
}

function fileSource(path: string, given: GivenFlags, all: FlagDocuments, environment: ParseEnvironment): Source {
  const { kept, ignored } = splitByConfig(given);
  const flags = flagDocuments(kept, environment.platform);
  const text = readText(path, environment);
  const documents = typeof text === "string" ? readDocuments(path, text) : { ...NOTHING, errors: [text] };
  const warnings = [...documents.warnings, ...overridden(flags.names, documents, path)];
  if (ignored.length > 0) warnings.unshift(`--config is set; ignoring these flags: ${ignored.join(", ")}`);
  return {
    origin: "file",
    kubeProxy: overlay(documents.kubeProxy, flags.kubeProxy),
    fairlead: overlay(documents.fairlead, flags.fairlead),
    ...(typeof text === "string" ? { configFile: { path, text } } : {}),
    name: namer(flags.names, (field) => `${path}: ${field}`),
    // A flag that cannot be read is wrong although it would be ignored: it is so for kube-proxy.
    errors: [...all.errors, ...documents.errors],
    warnings,
  };
}

const NOTHING = { kubeProxy: {}, fairlead: {}, warnings: [] };

function readText(path: string, { readFile }: ParseEnvironment): string | ConfigError {
  try {
    return readFile(path);
  } catch (error) {
    const reason = errorText(error);
    return { field: "--config", value: path, message: `cannot be read: ${reason}` };
  }
}

function overlay(document: RawObject, flags: RawObject): RawObject {
  return leafPaths(flags).reduce((result, path) => withValueAt(result, path, valueAt(flags, path)), document);
}

type Documents = Pick<Source, "kubeProxy" | "fairlead">;

function overridden(names: FlagDocuments["names"], { kubeProxy, fairlead }: Documents, file: string): string[] {
  return Object.entries(names).flatMap(([path, flag]) => {
    const inFile = valueAt(kubeProxy, path) ?? valueAt(fairlead, path) ?? "";
    return inFile === "" ? [] : [`${flag} overrides ${file}: ${path} (${showValue(inFile)})`];
  });
}

/** Names the flag that set a field, or the file and the field; an entry of a flag's list has the flag's name. */
function namer(flags: Readonly<Record<string, string>>, others: FieldNames): FieldNames {
  return (path) => {
    const keys = splitPath(path);
    for (let length = keys.length; length > 0; length--) {
      const above = joinPath(keys.slice(0, length));
      if (Object.hasOwn(flags, above)) return flags[above] ?? above;
    }
    return others(path);
  };
}

function flagFor(path: string): string {
  const flag = [...FLAGS.values()].find(({ fields }) => fields.includes(path));
  return flag === undefined ? path : `--${flag.name}`;
}

/** The documents of a --config file, distinguished but not yet read. */
interface ConfigDocuments {
  readonly kubeProxy: RawObject;
  readonly fairlead: RawObject;
  readonly errors: readonly ConfigError[];
  readonly warnings: readonly string[];
}

/** @param path names the file in errors and warnings */
function readDocuments(path: string, text: string): ConfigDocuments {
  const { documents, errors, warnings } = parseAll(path, text);
  const found = new Map<string, RawObject>();
  for (const value of documents) {
    if (value === null || value === undefined) continue;
    const bad = treeProblem(value, BOUNDS);
    if (bad !== undefined) {
      errors.push(...unreadable(path, new Error(bad)).errors);
      continue;
    }
    const problem = place(found, value);
    if (problem !== undefined) errors.push({ field: path, ...problem });
  }
  if (errors.length === 0 && !found.has(kubeProxy.KIND)) {
    errors.push({
      field: path,
      value: "",
      message: `has no document of kind ${kubeProxy.KIND} (${kubeProxy.API_VERSION})`,
    });
  }
  return { kubeProxy: found.get(kubeProxy.KIND) ?? {}, fairlead: found.get(fairlead.KIND) ?? {}, errors, warnings };
}

interface Parsed {
  readonly documents: readonly unknown[];
  readonly errors: ConfigError[];
  readonly warnings: readonly string[];
}

function parseAll(path: string, text: string): Parsed {
  try {
    return { documents: loadAll(text, OPTIONS), errors: [], warnings: [] };
  } catch (error) {
    if (!isRepeatedKey(error)) return unreadable(path, error);
    return withRepeatedKeys(path, text, error);
  }
}

function isRepeatedKey(error: unknown): error is YAMLException {
  return error instanceof YAMLException && error.reason === "duplicated mapping key";
}

/** kube-proxy takes a repeated key too: the last one counts. */
function withRepeatedKeys(path: string, text: string, { mark }: YAMLException): Parsed {
  try {
    const documents = loadAll(text, { ...OPTIONS, json: true });
    const line = mark === undefined ? "" : `line ${mark.line + 1}: `;
    return { documents, errors: [], warnings: [`${path}: ${line}a key is defined twice; the last one takes effect`] };
  } catch (error) {
    return unreadable(path, error);
  }
}

/** A mistake, aliases that multiply, nesting without end. */
function unreadable(path: string, error: unknown): Parsed {
  const reason =
    error instanceof YAMLException ? error.toString(true).replace(/^YAMLException: /, "") : errorText(error);
  return {
    documents: [],
    errors: [{ field: path, value: "", message: `is not valid YAML:  ${reason}` }],
    warnings: [],
  };
}

/**
 * Kubernetes reads YAML 1.1 (`yes` is true) but knows neither its times of day nor its dates: there `1:30` and
 * `2001-01-01` are text. Numbers may be written `1e3`.
 */
const OPTIONS = {
  schema: new Schema(
    YAML11_SCHEMA.tags.flatMap((tag) => {
      if (tag === timestampTag) return [];
      if (tag === intYaml11Tag) return [withoutTimes(intYaml11Tag)];
      return tag === floatYaml11Tag ? [withoutTimes(floatYaml11Tag, floatCoreTag)] : [tag];
    }),
  ),
  maxAliases: 20,
};

function withoutTimes(tag: ScalarTagDefinition<number>, other = tag): ScalarTagDefinition<number> {
  return {
    ...tag,
    resolve: (source, ...more) => {
      if (source.includes(":")) return NOT_RESOLVED;
      const found = tag.resolve(source, ...more);
      return found === NOT_RESOLVED ? other.resolve(source, ...more) : found;
    },
  };
}

/** Far more than a configuration has: what aliases make of it is not to be printed. */
const BOUNDS = { depth: 100, size: 2 ** 20 };

type Problem = Pick<ConfigError, "value" | "message">;

const KINDS = [kubeProxy, fairlead];

/** Puts a document to its kind, or says why it has no place. */
function place(found: Map<string, RawObject>, value: unknown): Problem | undefined {
  // What it has is not shown: it may be another file, which is not for everyone's eyes.
  if (!isObject(value)) {
    const is = Array.isArray(value) ? "a list" : typeof value === "string" ? "text" : "a value";
    return {
      value: "",
      message: `a document must be a block of fields (kind: KubeProxyConfiguration …), and one is ${is}`,
    };
  }
  const { kind, apiVersion } = value;
  if (kind === "ConfigMap") return wholeConfigMap(value);
  const known = KINDS.find((candidate) => candidate.KIND === kind);
  if (known === undefined) {
    const kinds = KINDS.map(({ KIND, API_VERSION }) => `${KIND} (${API_VERSION})`).join(" or ");
    return { value: `kind ${showValue(kind)}`.trim(), message: `a document's kind must be ${kinds}` };
  }
  if (apiVersion !== known.API_VERSION) {
    return {
      value: `apiVersion ${showValue(apiVersion)}`.trim(),
      message: `the apiVersion of ${known.KIND} must be ${known.API_VERSION}`,
    };
  }
  if (found.has(known.KIND)) return { value: `kind ${known.KIND}`, message: "must be defined once" };
  found.set(known.KIND, value);
  return undefined;
}

/** The object in place of the text that it has. */
function wholeConfigMap({ data }: RawObject): Problem {
  const keys = Object.entries(isObject(data) ? data : {}).filter(([, text]) => {
    return typeof text === "string" && KINDS.some(({ KIND }) => text.includes(KIND));
  });
  const [key] = keys.map(([name]) => `data[${JSON.stringify(name)}]`);
  return {
    value: "kind ConfigMap",
    message:
      key === undefined
        ? "is a ConfigMap without a configuration; give the text of the key that has one, as a volume has it as a file"
        : `is a whole ConfigMap; give the text of its ${key}, as a volume has it as a file`,
  };
}
