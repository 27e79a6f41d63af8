import { readFileSync } from "node:fs";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { isObject, type RawObject } from "@fairlead/base";

export interface ProtobufField {
  readonly number: number;
  /** `string`, `int32`, … or a message's name. */
  readonly type: string;
  readonly isMap: boolean;
  readonly isList: boolean;
}

/** Upstream's definitions by message: a wrong number in the reader under test is seen. */
export const MESSAGES = parse(readFileSync(new URL("kubernetes.proto", import.meta.url), "utf8"));

/** What every object in protobuf begins with (k8s.io/apimachinery/pkg/runtime/serializer/protobuf). */
const magic = new Uint8Array([0x6b, 0x38, 0x73, 0x00]);

/** An object or a list as an API server sends it: the magic and a runtime.Unknown around it. */
export function encodeObject(apiVersion: string, kind: string, object: unknown): Uint8Array {
  const raw = encode(kind, object);
  return Buffer.concat([magic, encode("Unknown", { typeMeta: { apiVersion, kind }, raw })]);
}

/** A frame of a watch: its length in four bytes, the highest first, and the event. */
export function encodeEvent(type: string, object: Uint8Array): Uint8Array {
  const event = encode("WatchEvent", { type, object: { raw: object } });
  const length = Buffer.alloc(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}

/** The file has messages of plain fields only: no enum, no oneof, nothing nested. */
function parse(proto: string): ReadonlyMap<string, ReadonlyMap<string, ProtobufField>> {
  return new Map(
    Array.from(proto.matchAll(/^message (\w+) \{\n([^}]*)\}/gm), ([, name = "", body = ""]) => {
      const fields = body.matchAll(/(?:(map)<string, (\w+)>|(optional|repeated) (\w+)) (\w+) = (\d+);/g);
      return [
        name,
        new Map(
          Array.from(fields, ([, map, inMap, label, plain, field = "", number]) => {
            const many = { isMap: map !== undefined, isList: label === "repeated" };
            return [field, { number: Number(number), type: inMap ?? plain ?? "", ...many }];
          }),
        ),
      ];
    }),
  );
}

/** What the definition doesn't have is left out. */
function encode(type: string, object: unknown): Uint8Array {
  const fields = MESSAGES.get(type);
  if (fields === undefined) throw new Error(`no message ${type}`);
  const writer = new BinaryWriter();
  for (const [name, value] of Object.entries(messageOf(type, object))) {
    const field = fields.get(name);
    if (field === undefined || value === null || value === undefined) continue;
    for (const one of valuesOf(field, value)) writeField(writer, field, one);
  }
  return writer.finish();
}

/** The object with what is written otherwise in JSON as the message has it. */
function messageOf(type: string, value: unknown): RawObject {
  if (type === "Time") return { seconds: Math.floor(Date.parse(String(value)) / 1000) };
  if (type === "Quantity") return { string: value };
  if (type === "IntOrString") return typeof value === "number" ? { intVal: value } : { type: 1, strVal: value };
  if (type === "FieldsV1") return { Raw: Buffer.from(JSON.stringify(value)) };
  return isObject(value) ? value : {};
}

/** Each time that the field is written. */
function valuesOf({ isMap }: ProtobufField, value: unknown): readonly unknown[] {
  if (isMap && isObject(value)) return Object.entries(value);
  return Array.isArray(value) ? value : [value];
}

function writeField(writer: BinaryWriter, { number, type, isMap }: ProtobufField, value: unknown): void {
  if (isMap && Array.isArray(value)) {
    const [key, inner] = value;
    const entry = new BinaryWriter();
    writeField(entry, { number: 1, type: "string", isMap: false, isList: false }, key);
    writeField(entry, { number: 2, type, isMap: false, isList: false }, inner);
    writer.tag(number, WireType.LengthDelimited).bytes(entry.finish());
  } else if (type === "bool") writer.tag(number, WireType.Varint).bool(value === true);
  else if (type === "int32") writer.tag(number, WireType.Varint).int32(Number(value));
  else if (type === "int64") writer.tag(number, WireType.Varint).int64(BigInt(Number(value)));
  else if (type === "string") writer.tag(number, WireType.LengthDelimited).string(String(value));
  else if (value instanceof Uint8Array) writer.tag(number, WireType.LengthDelimited).bytes(value);
  else writer.tag(number, WireType.LengthDelimited).bytes(encode(type, value));
}
