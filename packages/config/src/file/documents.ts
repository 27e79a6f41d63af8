import { errorText, isObject, type RawObject } from "@fairlead/base";
import {
  type CollectionTag,
  type Document,
  type DocumentOptions,
  type ParseOptions,
  parseAllDocuments,
  type ScalarTag,
  type SchemaOptions,
  type YAMLError,
} from "yaml";
import { showValue } from "../report.ts";
import * as fairlead from "../schema/fairlead.ts";
import * as kubeProxy from "../schema/kube-proxy.ts";
import type { ConfigError } from "../types.ts";

/** The documents of a --config file, told apart but not yet read. */
export interface ConfigDocuments {
  readonly kubeProxy: RawObject;
  readonly fairlead: RawObject;
  readonly errors: readonly ConfigError[];
  readonly warnings: readonly string[];
}

/** @param path names the file in errors and warnings */
export function readDocuments(path: string, text: string): ConfigDocuments {
  const parsed = parseAll(path, text);
  const errors = parsed.flatMap((document) => document.errors);
  const warnings = parsed.flatMap((document) => document.warnings);
  const found = new Map<string, RawObject>();
  for (const { value } of parsed) {
    if (value === null || value === undefined) continue;
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

function parseAll(path: string, text: string): ReadDocument[] {
  try {
    return [...parseAllDocuments(text, YAML_OPTIONS)].map((document) => readDocument(path, document));
  } catch (error) {
    return [unreadable(path, error)];
  }
}

/**
 * Kubernetes reads YAML 1.1 (`yes` is true) but knows neither its times of day nor its dates: there `1:30` and
 * `2001-01-01` are text.
 */
const YAML_OPTIONS: DocumentOptions & ParseOptions & SchemaOptions = {
  version: "1.1",
  merge: true,
  customTags: (tags) => tags.filter((tag) => typeof tag === "string" || !isTime(tag)),
};

function isTime(tag: CollectionTag | ScalarTag): boolean {
  return tag.tag === "tag:yaml.org,2002:timestamp" || ("format" in tag && tag.format === "TIME");
}

interface ReadDocument {
  readonly value: unknown;
  readonly errors: readonly ConfigError[];
  readonly warnings: readonly string[];
}

function readDocument(path: string, document: Document): ReadDocument {
  // kube-proxy takes a repeated key too: the last one counts.
  const repeated = document.errors.filter(({ code }) => code === "DUPLICATE_KEY");
  const errors = document.errors.filter(({ code }) => code !== "DUPLICATE_KEY");
  const warnings = repeated.map((error) => `${path}: ${position(error)}a key is there twice, the last one counts`);
  if (errors.length > 0) return { value: undefined, errors: errors.map((error) => syntaxError(path, error)), warnings };
  try {
    return { value: document.toJS() as unknown, errors: [], warnings };
  } catch (error) {
    return unreadable(path, error);
  }
}

/** Aliases that multiply, nesting without end. */
function unreadable(path: string, error: unknown): ReadDocument {
  const message = `is no readable YAML: ${errorText(error)}`;
  return { value: undefined, errors: [{ field: path, value: "", message }], warnings: [] };
}

function syntaxError(path: string, error: YAMLError): ConfigError {
  const [first = ""] = error.message.split("\n");
  return { field: path, value: "", message: `is no readable YAML: ${first}` };
}

function position({ linePos }: YAMLError): string {
  return linePos === undefined ? "" : `line ${linePos[0].line}: `;
}

type Problem = Pick<ConfigError, "value" | "message">;

const KINDS = [kubeProxy, fairlead];

/** Puts a document to its kind, or says why it has no place. */
function place(found: Map<string, RawObject>, value: unknown): Problem | undefined {
  if (!isObject(value)) return { value: showValue(value), message: "a document must be a block of fields" };
  const { kind, apiVersion } = value;
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
  if (found.has(known.KIND)) return { value: `kind ${known.KIND}`, message: "must be there once" };
  found.set(known.KIND, value);
  return undefined;
}
