import { isObject } from "@fairlead/base";
import type { Field, Message } from "../../src/protobuf/message.ts";

/** What of an object's JSON its protobuf is read to: the fields that the definition has. */
export function trimmed(raw: unknown, definition: Message): unknown {
  if (!isObject(raw)) return raw;
  const kept = definition.flatMap((field) => {
    const value = field && raw[field.name];
    return field === undefined || value === undefined || value === null ? [] : [[field.name, contentOf(value, field)]];
  });
  return Object.fromEntries(kept);
}

function contentOf(value: unknown, { type, many }: Field): unknown {
  if (typeof type === "string" || many === "map") return value;
  return Array.isArray(value) ? value.map((item) => trimmed(item, type)) : trimmed(value, type);
}
