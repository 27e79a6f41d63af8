/**
 * The configuration as a table: a row for each field and each flag. The schema of files, the flags with --help, the
 * JSON Schema, the form that kube-proxy serves, what a report may have, and the tables of docs/compatibility.md all
 * come from it.
 */
import * as z from "zod";
import type { ResolvedConfig } from "../types.ts";
import { type FlagType, flagTypeOf } from "./scalars.ts";

/** Headings of --help, in its order. */
export const GROUPS = {
  api: "Configuration file and API server",
  networks: "More than one pod network",
  node: "Node",
  mode: "Mode",
  userspace: "Userspace mode",
  local: "Traffic of this node's pods",
  tracking: "Connection tracking",
  served: "Health and metrics",
  logging: "Logging",
  once: "One-time actions",
  windows: "Windows",
} as const;

export type Group = keyof typeof GROUPS;

interface FlagRow {
  readonly group?: Group;
  /** Default: what the field's value type has. */
  readonly type?: FlagType;
  /** Shown by --help; absent where the default is empty, false or depends on something. */
  readonly default?: string;
  readonly help?: string;
  /** Counts although --config is given. Flags of Fairlead's own fields always do. */
  readonly withConfig?: true;
  /** Not in --help: what to use instead. */
  readonly deprecated?: string;
}

/** How a field or flag compares with kube-proxy's, for docs/compatibility.md. */
interface Comparison {
  readonly differs?: string;
  /** Why it has no meaning here. */
  readonly notApplicable?: string;
  /** It is the same; what there is to know. */
  readonly note?: string;
  /** It is Fairlead's own: what it means. */
  readonly meaning?: string;
}

export interface FieldRow extends FlagRow, Comparison {
  /** Without the dashes. One flag may set several fields: the first of them has its help. */
  readonly flag?: string;
  /** Reports such as `fairlead sysdump` leave it out, for this reason. */
  readonly private?: string;
  /** What kube-proxy would serve of the field; undefined: nothing. Default: as given, or empty. */
  readonly external?: (config: ResolvedConfig, given: unknown) => unknown;
}

export interface OptionRow extends FlagRow, Comparison {
  readonly group: Group;
  readonly type: FlagType;
}

const ROWS = z.registry<{ readonly row: FieldRow }>();

/** A field; it may be absent. */
export function field<Schema extends z.ZodType>(schema: Schema, row: FieldRow): z.ZodOptional<Schema> {
  const type = row.type ?? (row.flag === undefined ? undefined : flagTypeOf(schema));
  const optional = schema.optional();
  ROWS.add(optional, { row: { ...row, ...(type && { type }) } });
  return optional;
}

/** Fields that stand together in a document; each is in the group of --help, unless it says another. */
export function block<const Shape extends z.ZodRawShape>(
  group: Group,
  shape: Shape,
): z.ZodPrefault<z.ZodObject<Shape, z.core.$strict>> {
  for (const schema of Object.values(shape)) {
    const row = rowOf(schema);
    if (row !== undefined) ROWS.add(schema, { row: { group, ...row } });
  }
  return z.strictObject(shape).prefault({} as never);
}

/** The row of a field; undefined: the schema is no field. */
export function rowOf(schema: z.core.$ZodType): FieldRow | undefined {
  return ROWS.get(schema)?.row;
}

/** Each field of a document with its path, in the order of the table. */
export function fieldsOf(schema: z.core.$ZodType, prefix = ""): readonly (FieldRow & { readonly path: string })[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodPrefault) {
    const row = rowOf(schema);
    return row === undefined ? fieldsOf(schema.unwrap(), prefix) : [{ ...row, path: prefix }];
  }
  if (!(schema instanceof z.ZodObject)) return [];
  return Object.entries(schema.shape).flatMap(([name, below]) =>
    fieldsOf(below, prefix === "" ? name : `${prefix}.${name}`),
  );
}
