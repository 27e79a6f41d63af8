import type { AttributeWriter } from "../../netlink/writer.ts";
import { encodeVerdict } from "../expressions/immediate.ts";
import { type Expression, kindOf } from "../expressions/index.ts";
import type { SetElement } from "../model.ts";
import * as numbers from "./numbers.ts";
import { commentData } from "./user-data.ts";

/** An item of a rule's list. */
export function writeExpression(expression: Expression, to: AttributeWriter): void {
  const kind = kindOf(expression);
  to.text(numbers.EXPRESSION.name, kind.name);
  to.nest(numbers.EXPRESSION.data, (data) => kind.encode(expression, data));
}

/** An item of a set's list. */
export function writeElement(element: SetElement, to: AttributeWriter): void {
  const { key, value, object, intervalEnd, timeout, expires, comment } = element;
  to.nest(numbers.ELEMENT.key, (inner) => inner.hex(numbers.DATA_VALUE, key));
  if (value !== undefined) {
    to.nest(numbers.ELEMENT.data, (inner) => {
      if (typeof value === "string") inner.hex(numbers.DATA_VALUE, value);
      else encodeVerdict(value, inner);
    });
  }
  if (intervalEnd) to.u32(numbers.ELEMENT.flags, numbers.INTERVAL_END);
  if (timeout !== undefined) to.u64(numbers.ELEMENT.timeout, BigInt(timeout));
  if (expires !== undefined) to.u64(numbers.ELEMENT.expiration, BigInt(expires));
  if (object !== undefined) to.text(numbers.ELEMENT.object, object);
  if (comment !== undefined) to.hex(numbers.ELEMENT.userData, commentData("element", comment));
}
