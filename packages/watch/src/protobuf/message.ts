/** One field of a message as the object's JSON has it. */
export interface Field {
  readonly name: string;
  readonly type: "string" | "int32" | "bool" | "bytes" | "time" | Message;
  readonly many: "list" | "map" | undefined;
  /** Go's `omitempty` on what is no pointer: JSON leaves it out where it is empty, protobuf writes it. */
  readonly omitEmpty: boolean;
}

/**
 * The fields of a message that are read, each at its number (the `generated.proto` alongside the Go type has them); all
 * others are passed over.
 */
export type Message = readonly (Field | undefined)[];

export function message(fields: Readonly<Record<number, Field>>): Message {
  const numbers = Object.keys(fields).map(Number);
  return Array.from({ length: Math.max(...numbers) + 1 }, (_, number) => fields[number]);
}

/** JSON has it whenever protobuf has it: a pointer in Go, or always there. */
export function field(name: string, type: Field["type"]): Field {
  return { name, type, many: undefined, omitEmpty: false };
}

export function omitEmpty(name: string, type: "string" | "int32" | "bool"): Field {
  return { name, type, many: undefined, omitEmpty: true };
}

export function list(name: string, type: "string" | Message): Field {
  return { name, type, many: "list", omitEmpty: false };
}

/** From text to text. */
export function map(name: string): Field {
  return { name, type: entry, many: "map", omitEmpty: false };
}

const entry = message({ 1: field("key", "string"), 2: field("value", "string") });
