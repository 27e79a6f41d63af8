import { type NamedObject, OBJECT_TYPES, objectOf } from "../named-objects.ts";
import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf } from "./registers.ts";

/**
 * Applies a named object of the table to the packet: the one of that name, or the one that a map has for what is in
 * the registers from `from` on (the rule ends where the map has none).
 */
export type Objref =
  | { readonly kind: "objref"; readonly object: NamedObject; readonly name: string }
  | { readonly kind: "objref"; readonly map: string; readonly from: Register };

/** NFTA_OBJREF_*. */
const DATA = { type: 1, name: 2, from: 3, map: 4 } as const;

export const objref: ExpressionKind<Objref> = {
  name: "objref",
  encode(expression, writer) {
    if ("map" in expression) {
      writer.u32(DATA.from, registerNumber(expression.from)).text(DATA.map, expression.map);
    } else writer.u32(DATA.type, OBJECT_TYPES[expression.object]).text(DATA.name, expression.name);
  },
  decode(data) {
    const [object, name] = [objectOf(data.u32(DATA.type)), data.text(DATA.name)];
    const [from, map] = [data.u32(DATA.from), data.text(DATA.map)];
    if (from !== undefined && map !== undefined) return { kind: "objref", map, from: registerOf(from) };
    return object === undefined || name === undefined ? undefined : { kind: "objref", object, name };
  },
  print(expression, printer) {
    if ("object" in expression) {
      printer.say(`${words(expression.object)} "${expression.name}"`);
      return;
    }
    const { text, keyLength, objects } = printer.set(expression.map);
    const key = printer.value(expression.from, keyLength).text;
    printer.say(`${objects === undefined ? "objref" : words(objects)} ${key} map ${text}`);
  },
};

/** As `nft list` begins the statement (objref_stmt_print). */
function words(object: NamedObject): string {
  if (object === "secmark") return "meta secmark set";
  return object.startsWith("ct ") ? `${object} set` : `${object} name`;
}
