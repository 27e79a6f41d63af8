/** Reads a document by its schema, and says what is wrong with it. */
import { isObject, type RawObject } from "@fairlead/base";
import * as z from "zod";
import { joinPath, valueAt, withoutKeys } from "../paths.ts";
import { closest, type Report, showValue } from "../report.ts";
import { enumeration } from "./scalars.ts";

export interface OtherDocument {
  readonly KIND: string;
  readonly schema: z.ZodObject;
}

/**
 * Reads `raw` by `schema`. Null and "" are as good as absent; unknown fields are reported as warnings, wrong values as
 * errors, and both are left out of the result, so that the rest can be looked at too.
 *
 * @param other which an unknown field may belong in
 */
export function decode<Schema extends z.ZodObject>(
  schema: Schema,
  raw: RawObject,
  report: Report,
  other: OtherDocument,
): z.output<Schema> {
  const given = withoutEmpty(raw, schema);
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const { issues } = result.error;
  const unknown = issues.flatMap((issue) =>
    issue.code === "unrecognized_keys" ? issue.keys.map((key) => [...issue.path, key]) : [],
  );
  for (const path of unknown)
    report.warn(`${report.name(joinPath(path))}: unknown field, ignored${hint(schema, raw, path, other)}`);
  if (unknown.length > 0) return decode(schema, withoutKeys(raw, unknown), report, other);
  for (const issue of issues) report.error(joinPath(issue.path), messageOf(issue));
  return decode(schema, withoutKeys(given, issues.map(fieldOf)), report, other);
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
 * Null and "" mean the default: fields that hold them are left out, at every depth that the schemas have (list entries
 * stay). What lies deeper belongs to no field.
 *
 * @param schema where it has fields, an unknown key stays: it is a mistake whatever it holds
 */
function withoutEmpty(root: RawObject, schema: z.core.$ZodType | undefined, depth = 6): RawObject {
  const fields = shapeOf(schema);
  const entries = Object.entries(root).flatMap(([key, value]) => {
    const below = fields && Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (isEmpty(value)) return fields !== undefined && below === undefined ? [[key, value] as const] : [];
    return [[key, depth > 0 && isObject(value) ? withoutEmpty(value, below, depth - 1) : value] as const];
  });
  return Object.fromEntries(entries);
}

function isEmpty(value: unknown): boolean {
  return value === null || value === "";
}

/** Where an unknown field belongs, or which one it may be. */
function hint(schema: z.ZodObject, raw: RawObject, path: readonly PropertyKey[], other: OtherDocument): string {
  const key = String(path.at(-1));
  if (schemaAt(other.schema, path) !== undefined) return ` (belongs in a ${other.KIND}, another document of the file)`;
  const blocks = blocksWith(schema, key);
  const block = emptyBefore(raw, path, blocks) ?? (blocks.length === 1 ? blocks[0] : undefined);
  if (block !== undefined) {
    const value = valueAt(raw, joinPath(path));
    return ` (belongs under ${block}, indented: ${block}.${key}: ${isEmpty(value) ? "null" : showValue(value)})`;
  }
  if (blocks.length > 1) return ` (belongs under ${enumeration(blocks)})`;
  const near = closest(key, Object.keys(shapeOf(schemaAt(schema, path.slice(0, -1))) ?? {}));
  return near === undefined ? "" : ` (did you mean ${near}?)`;
}

/** A block that lost its fields is empty, and the last one of those before them. */
function emptyBefore(raw: RawObject, [key]: readonly PropertyKey[], blocks: readonly string[]): string | undefined {
  const keys = Object.keys(raw);
  return keys.slice(0, keys.indexOf(String(key))).findLast((one) => blocks.includes(one) && isEmpty(raw[one]));
}

function blocksWith(schema: z.core.$ZodType, name: string, prefix = ""): readonly string[] {
  return Object.entries(shapeOf(schema) ?? {}).flatMap(([key, field]) => {
    const shape = shapeOf(field);
    if (shape === undefined) return [];
    const path = prefix === "" ? key : `${prefix}.${key}`;
    return [...(Object.hasOwn(shape, name) ? [path] : []), ...blocksWith(field, name, path)];
  });
}

function schemaAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): z.core.$ZodType | undefined {
  return path.reduce<z.core.$ZodType | undefined>((found, key) => {
    const shape = shapeOf(found);
    return shape !== undefined && Object.hasOwn(shape, key) ? shape[String(key)] : undefined;
  }, schema);
}

/** The fields of a block; undefined: the schema is no block. */
function shapeOf(schema: z.core.$ZodType | undefined): Readonly<Record<string, z.core.$ZodType>> | undefined {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodPrefault) return shapeOf(schema.unwrap());
  return schema instanceof z.ZodObject ? schema.shape : undefined;
}
