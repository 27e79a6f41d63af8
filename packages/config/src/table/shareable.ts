/**
 * What of a configuration may leave its node in a report: every field of the table, but for those that it marks as
 * private.
 */
import { isObject, type RawObject } from "@fairlead/base";
import * as z from "zod";
import * as fairlead from "./fairlead.ts";
import * as kubeProxy from "./kube-proxy.ts";
import { rowOf } from "./row.ts";

/** The two documents that a configuration file may have. */
export type ConfigurationKind = typeof kubeProxy.KIND | typeof fairlead.KIND;

/** Stands in place of a value that its field cannot have: a reader then rejects the field, it is not taken as unset. */
export const INVALID_VALUE = "invalid";

const SCHEMAS: Readonly<Record<ConfigurationKind, z.ZodObject>> = {
  [kubeProxy.KIND]: kubeProxy.kubeProxySchema,
  [fairlead.KIND]: fairlead.fairleadSchema,
};

/** Names of feature gates, the only keys that a configuration's author chooses. */
const KEY = /^[A-Za-z][A-Za-z0-9]{0,60}$/;

/**
 * A document without its private and its unknown fields, in the form in which it was written. A value of the wrong form
 * becomes `INVALID_VALUE`.
 *
 * @param raw straight from JSON or YAML, untrusted
 * @param cleaned what is kept of a text that its author chose
 */
export function shareableConfiguration(
  kind: ConfigurationKind,
  raw: unknown,
  cleaned: (text: string) => string,
): unknown {
  return shareable(SCHEMAS[kind], raw, cleaned);
}

/** @returns undefined: nothing of it may leave */
function shareable(schema: z.core.$ZodType, value: unknown, cleaned: (text: string) => string): unknown {
  if (rowOf(schema)?.private !== undefined) return undefined;
  // Null and "" are the default of every field.
  if (value === null || value === "") return value;
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodPrefault || schema instanceof z.ZodReadonly) {
    return shareable(schema.unwrap(), value, cleaned);
  }
  if (schema instanceof z.ZodObject && isObject(value)) return shareableFields(schema, value, cleaned);
  if (schema instanceof z.ZodArray && Array.isArray(value)) {
    return value.map((item) => shareable(schema.element, item, cleaned));
  }
  if (schema instanceof z.ZodRecord && isObject(value)) {
    const entries = Object.entries(value).filter(([key]) => KEY.test(key));
    return Object.fromEntries(entries.map(([key, inner]) => [key, shareable(schema.valueType, inner, cleaned)]));
  }
  if (!z.safeParse(schema, value).success) return INVALID_VALUE;
  if (schema instanceof z.ZodUnion) {
    const fitting = schema.options.find((option) => z.safeParse(option, value).success);
    if (fitting !== undefined) return shareable(fitting, value, cleaned);
  }
  return typeof value === "string" ? cleaned(value) : value;
}

function shareableFields(schema: z.ZodObject, value: RawObject, cleaned: (text: string) => string): RawObject {
  const kept = Object.entries(schema.shape).flatMap(([name, field]) => {
    const inner = Object.hasOwn(value, name) ? shareable(field, value[name], cleaned) : undefined;
    return inner === undefined ? [] : [[name, inner] as const];
  });
  return Object.fromEntries(kept);
}
