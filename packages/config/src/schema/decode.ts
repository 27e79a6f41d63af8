import { isObject, type RawObject } from "@fairlead/base";
import * as z from "zod";
import { joinPath, withoutKeys } from "../paths.ts";
import type { Report } from "../report.ts";
import { closest } from "../suggest.ts";

/**
 * Reads `raw` by `schema`. Null and "" are as good as absent; unknown fields are reported as warnings, wrong values as
 * errors, and both are left out of the result, so that the rest can be looked at too.
 */
export function decode<Schema extends z.ZodObject>(schema: Schema, raw: RawObject, report: Report): z.output<Schema> {
  const given = withoutEmpty(raw);
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const { issues } = result.error;
  const unknown = issues.flatMap((issue) =>
    issue.code === "unrecognized_keys" ? issue.keys.map((key) => [...issue.path, key]) : [],
  );
  for (const path of unknown) report.warn(unknownField(schema, path, report));
  if (unknown.length > 0) return decode(schema, withoutKeys(given, unknown), report);
  for (const issue of issues) report.error(joinPath(issue.path), messageOf(issue));
  return decode(schema, withoutKeys(given, issues.map(fieldOf)), report);
}

/** The field that has to go with a wrong value: entries of lists have none of their own. */
function fieldOf({ path }: z.core.$ZodIssue): readonly PropertyKey[] {
  const entry = path.findIndex((key) => typeof key === "number");
  return entry === -1 ? path : path.slice(0, entry);
}

function messageOf(issue: z.core.$ZodIssue): string {
  return isObject(issue) && issue.code === "invalid_type" && issue.expected === "object"
    ? "must be a block of fields"
    : issue.message;
}

/**
 * Null and "" mean the default: keys that hold them are left out, at every depth that the schemas have (list entries
 * stay). What lies deeper belongs to no field.
 */
function withoutEmpty(root: RawObject, depth = 6): RawObject {
  const entries = Object.entries(root).filter(([, value]) => value !== null && value !== "");
  const below = (value: unknown) => (depth > 0 && isObject(value) ? withoutEmpty(value, depth - 1) : value);
  return Object.fromEntries(entries.map(([key, value]) => [key, below(value)]));
}

function unknownField(schema: z.ZodObject, path: readonly PropertyKey[], report: Report): string {
  const near = closest(String(path.at(-1)), fieldsAt(schema, path.slice(0, -1)));
  const hint = near === undefined ? "" : ` (did you mean ${near}?)`;
  return `${report.name(joinPath(path))}: unknown field, ignored${hint}`;
}

function fieldsAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodPrefault) return fieldsAt(schema.unwrap(), path);
  if (!(schema instanceof z.ZodObject)) return [];
  const [head, ...rest] = path;
  const below = head === undefined ? undefined : schema.shape[String(head)];
  if (below === undefined) return head === undefined ? Object.keys(schema.shape) : [];
  return fieldsAt(below, rest);
}
