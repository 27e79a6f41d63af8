import type { Attributes } from "../../netlink/reader.ts";
import type { AttributeWriter } from "../../netlink/writer.ts";
import type { NftFamily } from "../family.ts";
import type { Printer } from "./printer.ts";

/**
 * A kind of expression, all of it: how netlink has it, and how `nft` prints it. What it does to a packet is the
 * tracer's.
 * Kinds are the kernel's (`nft --debug=netlink` prints them); one that is not in the table is refused, never left out.
 */
export interface ExpressionKind<E extends { readonly kind: string }> {
  /** The kernel's name of it; `kind` of the typed expression, where the kernel needs no second one. */
  readonly name: string;
  /** Writes what is in NFTA_EXPR_DATA. */
  encode(expression: E, writer: AttributeWriter): void;
  /**
   * @param family of the table
   * @returns undefined when it is of this kind and says what is not known here
   */
  decode(data: Attributes, family: NftFamily): E | undefined;
  /** Adds its words, or leaves a value in a register for those that follow. */
  print(expression: E, printer: Printer): void;
}
