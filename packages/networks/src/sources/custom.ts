import { fieldsOf } from "@fairlead/base";
import { ReadingBuilder } from "./reading.ts";
import type { NetworkSource, Reading, ResourceRef } from "./source.ts";

/** A source that an operator describes. */
export interface CustomSettings {
  /** `plural.version.group`, as `spiderippools.v2beta1.spiderpool.spidernet.io`. */
  readonly resource: string;
  /**
   * Where the CIDRs stand, as `spec.subnet`: names between dots, `\.` for a dot in a name. Lists on the way are gone
   * through, `[]` behind a name says so and may be left out.
   */
  readonly fields: readonly string[];
}

/**
 * Any other resource, cluster-scoped or in namespaces.
 *
 * @throws RangeError for a resource or field that has no such form
 */
export function customSource({ resource, fields }: CustomSettings): NetworkSource {
  const paths = fields.map((field) => ({ field, names: namesIn(field) }));
  return {
    id: resource,
    scope: `${resource}(${[...fields].sort().join(",")})`,
    resources: [resourceRef(resource)],
    read(raw): Reading {
      const reading = new ReadingBuilder();
      for (const { field, names } of paths) for (const value of valuesAt(raw, names)) reading.add(field, value);
      return reading.done();
    },
  };
}

/** @throws RangeError when it is not `plural.version.group` */
function resourceRef(text: string): ResourceRef {
  const [, plural, version, group] = /^([a-z][a-z0-9]*)\.(v[0-9][a-z0-9]*)\.([a-z0-9][-a-z0-9.]*)$/.exec(text) ?? [];
  if (plural === undefined || version === undefined || group === undefined) {
    throw new RangeError(`${JSON.stringify(text)} must be plural.version.group, as ippools.v1.crd.projectcalico.org`);
  }
  return { group, version, plural, kind: plural, namespaced: false };
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
  else if (Object.hasOwn(fieldsOf(value), name)) yield* valuesAt(fieldsOf(value)[name], others);
}
