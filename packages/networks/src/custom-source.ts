import { fieldsOf, parseJSON } from "@fairlead/base";
import { type NetworkSource, type Reading, ReadingBuilder, type ResourceRef } from "./source.ts";

/** A source that an operator describes. */
export interface CustomSettings {
  /** `plural.version.group`, as `spiderippools.v2beta1.spiderpool.spidernet.io`; `configmaps.v1` of the core group. */
  readonly resource: string;
  /** The only object that is read. Absent: all, which must be cluster-scoped then. */
  readonly only?: NonNullable<ResourceRef["only"]>;
  /**
   * Where the CIDRs stand, as `spec.subnet`: names between dots, `\.` for a dot in a name. Lists on the way are gone
   * through, `[]` behind a name says so and may be left out. A text on the way is read as JSON, as in a ConfigMap.
   */
  readonly fields: readonly string[];
}

/**
 * Any other resource whose objects are cluster-scoped, or one object of any.
 *
 * @throws RangeError for a resource or field that has no such form
 */
export function customSource({ resource, fields, only }: CustomSettings): NetworkSource {
  const paths = fields.map((field) => ({ field, names: namesIn(field) }));
  return {
    id: resource,
    scope: `${resource}(${[...fields, ...(only ? [`${only.namespace}/${only.name}`] : [])].sort().join(",")})`,
    resources: [{ ...resourceRef(resource), ...(only && { namespaced: true, only }) }],
    read(raw): Reading {
      const reading = new ReadingBuilder();
      for (const { field, names } of paths) for (const value of valuesAt(raw, names)) reading.add(field, value);
      return reading.done();
    },
  };
}

const RESOURCE = /^([a-z](?:[-a-z0-9]*[a-z0-9])?)\.(v[0-9][a-z0-9]*)(?:\.([a-z0-9][-a-z0-9.]*))?$/;

/** @throws RangeError when it is not `plural.version.group` */
function resourceRef(text: string): ResourceRef {
  const [, plural, version, group = ""] = RESOURCE.exec(text) ?? [];
  if (plural === undefined || version === undefined) {
    const form = "plural.version.group, such as ippools.v1.crd.projectcalico.org, or configmaps.v1 of the core group";
    throw new RangeError(`${JSON.stringify(text)} must be ${form}`);
  }
  const kind = group === "" && plural === "configmaps" ? "ConfigMap" : plural;
  return { group, version, plural, kind, namespaced: false };
}

/** @throws RangeError when a name is empty */
function namesIn(field: string): readonly string[] {
  const names = field.split(/(?<!\\)\./).map((name) => name.replace(/\[\]$/, "").replaceAll("\\.", "."));
  if (names.includes("")) throw new RangeError(`${JSON.stringify(field)} must be names between dots, as spec.subnet`);
  return names;
}

function* valuesAt(value: unknown, [name, ...others]: readonly string[]): Generator<unknown, void> {
  if (Array.isArray(value)) {
    for (const item of value) yield* valuesAt(item, name === undefined ? [] : [name, ...others]);
  } else if (name === undefined) yield value;
  else if (typeof value === "string") {
    if (value.length <= LONGEST_JSON) yield* valuesAt(parseJSON(value), [name, ...others]);
  } else if (Object.hasOwn(fieldsOf(value), name)) yield* valuesAt(fieldsOf(value)[name], others);
}

/** Longer texts are not a network's configuration. */
const LONGEST_JSON = 65_536;
