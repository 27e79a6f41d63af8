import { fieldsOf, isObject } from "@fairlead/base";
import type { Keep } from "./keep.ts";

/**
 * Keeps what stands at these paths and fits, of objects, lists on the way, and JSON in texts.
 *
 * @param paths as `spec.subnet`: names between dots, `\.` for a dot in a name, `[]` behind one for a list
 */
export function atPaths(paths: readonly string[], leaf: Keep): Keep {
  return keepAt(paths.map(namesIn), leaf);
}

function namesIn(path: string): readonly string[] {
  return path.split(/(?<!\\)\./).map((name) => name.replace(/\[\]$/, "").replaceAll("\\.", "."));
}

function keepAt(paths: readonly (readonly string[])[], leaf: Keep): Keep {
  const keep: Keep = (value) => {
    if (Array.isArray(value)) return value.map(keep).filter((one) => one !== undefined);
    if (paths.some((names) => names.length === 0)) return leaf(value);
    if (typeof value === "string") return parsedText(value, keep);
    return isObject(value) ? keptFields(value, paths, leaf) : undefined;
  };
  return keep;
}

function keptFields(value: Readonly<Record<string, unknown>>, paths: readonly (readonly string[])[], leaf: Keep) {
  const names = new Set(paths.flatMap(([first]) => first ?? []));
  const kept = Array.from(names).flatMap((name) => {
    if (!Object.hasOwn(value, name)) return [];
    const below = paths.filter(([first]) => first === name).map(([, ...rest]) => rest);
    const inner = keepAt(below, leaf)(fieldsOf(value)[name]);
    return inner === undefined ? [] : [[name, inner] as const];
  });
  return Object.fromEntries(kept);
}

function parsedText(text: string, keep: Keep): string | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== "object" || parsed === null) return undefined;
    return JSON.stringify(keep(parsed));
  } catch {
    return undefined;
  }
}
