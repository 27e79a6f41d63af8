import { readFileSync } from "node:fs";
import { isObject, type RawObject } from "@fairlead/base";
import protobuf, { type Type } from "protobufjs";

/** Upstream's definitions, read by another library than the one under test: a wrong number in either is seen. */
const { root } = protobuf.parse(readFileSync(new URL("kubernetes.proto", import.meta.url), "utf8"), { keepCase: true });

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

/** What the definition doesn't have is left out. */
function encode(kind: string, object: unknown): Uint8Array {
  const type = root.lookupType(kind);
  return type.encode(type.fromObject(Object(messageOf(type, object)))).finish();
}

/** The object with what is written otherwise in JSON as the message has it. */
function messageOf(type: Type, value: unknown): unknown {
  if (type.name === "Time") return { seconds: Math.floor(Date.parse(String(value)) / 1000) };
  if (type.name === "IntOrString") return typeof value === "number" ? { intVal: value } : { type: 1, strVal: value };
  if (type.name === "FieldsV1") return { Raw: Buffer.from(JSON.stringify(value)) };
  if (!isObject(value)) return value;
  const message: RawObject = {};
  for (const [name, inner] of Object.entries(value)) {
    const { resolvedType } = type.fields[name]?.resolve() ?? {};
    if (inner === null) continue;
    if (!(resolvedType instanceof protobuf.Type)) message[name] = inner;
    else if (Array.isArray(inner)) message[name] = inner.map((item) => messageOf(resolvedType, item));
    else message[name] = messageOf(resolvedType, inner);
  }
  return message;
}
