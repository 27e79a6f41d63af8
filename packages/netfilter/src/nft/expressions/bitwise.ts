import type { Hex } from "../hex.ts";
import { DATA_VALUE } from "./cmp.ts";
import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf } from "./registers.ts";

/** `to` becomes `from & mask ^ xor`; an or is one with the bits left out of the mask. */
export interface Bitwise {
  readonly kind: "bitwise";
  readonly from: Register;
  readonly to: Register;
  readonly mask: Hex;
  readonly xor: Hex;
}

const DATA = { from: 1, to: 2, length: 3, mask: 4, xor: 5, operation: 6 } as const;
/** NFT_BITWISE_MASK_XOR, formerly NFT_BITWISE_BOOL: the only operation that kernels before 5.6 have. */
const MASK_XOR = 0;

export const bitwise: ExpressionKind<Bitwise> = {
  name: "bitwise",
  encode({ from, to, mask, xor }, writer) {
    writer
      .u32(DATA.from, registerNumber(from))
      .u32(DATA.to, registerNumber(to))
      .u32(DATA.length, mask.length / 2);
    writer.nest(DATA.mask, (inner) => inner.hex(DATA_VALUE, mask));
    writer.nest(DATA.xor, (inner) => inner.hex(DATA_VALUE, xor));
  },
  decode(data) {
    const [from, to] = [data.u32(DATA.from), data.u32(DATA.to)];
    const mask = data.nested(DATA.mask)?.hex(DATA_VALUE);
    const xor = data.nested(DATA.xor)?.hex(DATA_VALUE);
    const operation = data.u32(DATA.operation) ?? MASK_XOR;
    if (from === undefined || to === undefined || mask === undefined || xor === undefined) return undefined;
    if (operation !== MASK_XOR) return undefined;
    return { kind: "bitwise", from: registerOf(from), to: registerOf(to), mask, xor };
  },
  print: ({ from, to, mask, xor }, printer) => printer.mask(from, to, mask, xor),
};
