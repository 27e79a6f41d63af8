import { numberOf, stringOf, valueAt } from "@fairlead/base";
import { type NftSet, SET_FLAGS, type SetFlag } from "../model.ts";
import { isNamedObject } from "../named-objects.ts";
import { fieldFacts } from "../reading/fields.ts";
import type { Operand } from "../reading/phrases.ts";
import { dataTypes, NotKnown } from "../reading/values.ts";
import type { DataType } from "../types.ts";
import { listOf } from "./list.ts";
import { notKnown, operandIn } from "./operands.ts";

/**
 * A set or a map without its elements; times are in seconds.
 *
 * @throws NotKnown when it has types that are not known here
 */
export function setFactsIn(json: unknown): Omit<NftSet, "elements"> {
  const data = valueAt(json, "map");
  const [timeout, size] = [numberOf(valueAt(json, "timeout")), numberOf(valueAt(json, "size"))];
  const comment = stringOf(valueAt(json, "comment"));
  return {
    name: stringOf(valueAt(json, "name")) ?? "",
    key: typesIn(valueAt(json, "type")),
    flags: listOf(valueAt(json, "flags")).flatMap(flagIn),
    ...(typeof data === "string" && isNamedObject(data)
      ? { objects: data }
      : data !== undefined && { data: data === "verdict" ? "verdict" : typesIn(data) }),
    ...(timeout !== undefined && { timeout: timeout * 1000 }),
    ...(size !== undefined && { size }),
    ...(comment !== undefined && { comment }),
  };
}

/** `"ipv4_addr"`, `["ipv4_addr", "inet_service"]`, `"ipv4_addr . inet_service"`, or an expression of the type. */
function typesIn(json: unknown): readonly DataType[] {
  const expression = valueAt(json, "typeof");
  if (expression !== undefined) return operandTypes(operandIn(expression));
  const names = listOf(json).flatMap((one) => stringOf(one)?.split(" . ") ?? []);
  if (names.length === 0) throw notKnown(json);
  return dataTypes(names);
}

function operandTypes(operand: Operand): readonly DataType[] {
  if (operand.kind === "concat") return operand.parts.flatMap(operandTypes);
  if (operand.kind === "numgen") return ["integer"];
  const type = fieldFacts(operand.name)?.type;
  if (type === undefined) throw new NotKnown(operand.name);
  return [type];
}

function flagIn(json: unknown): readonly SetFlag[] {
  return typeof json === "string" && json !== "map" && Object.hasOwn(SET_FLAGS, json) ? [json as SetFlag] : [];
}
