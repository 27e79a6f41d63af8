import { errorText, type RawObject } from "@fairlead/base";
import type { GivenFlags } from "./command-line.ts";
import { readDocuments } from "./file/documents.ts";
import { FLAGS, type FlagDocuments, flagDocuments, splitByConfig } from "./flags.ts";
import type { ConfigError, ParseEnvironment } from "./parse-types.ts";
import { joinPath, leafPaths, splitPath, valueAt, withValueAt } from "./paths.ts";
import { type FieldNames, showValue } from "./report.ts";

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

function fileSource(path: string, given: GivenFlags, all: FlagDocuments, environment: ParseEnvironment): Source {
  const { kept, ignored } = splitByConfig(given);
  const flags = flagDocuments(kept);
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

/** The source with flags that override all of it. */
export function withOverrides(source: Source, { kubeProxy, fairlead, names, errors }: FlagDocuments): Source {
  return {
    ...source,
    kubeProxy: overlay(source.kubeProxy, kubeProxy),
    fairlead: overlay(source.fairlead, fairlead),
    name: namer(names, source.name),
    errors: [...source.errors, ...errors],
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

/** The flag that would set a field. */
function flagFor(path: string): string {
  const flag = [...FLAGS.values()].find(({ fields }) => fields.includes(path));
  return flag === undefined ? path : `--${flag.name}`;
}
