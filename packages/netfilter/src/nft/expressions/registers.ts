/**
 * Where expressions leave what later ones take: the place of a 32-bit register, 0 to 15. Values longer than four bytes
 * go over several.
 */
export type Register = number;

const FIRST_OF_16_BYTES = 1;
const FIRST_OF_4_BYTES = 8;
/** NFT_REG_VERDICT: a verdict is left there, and taken at once. */
export const VERDICT_REGISTER = 0;

/** The kernel's number, as it writes it itself: NFT_REG_1 to NFT_REG_4 where one of those begins, else NFT_REG32_xx. */
export function registerNumber(register: Register): number {
  return register % 4 === 0 ? FIRST_OF_16_BYTES + register / 4 : FIRST_OF_4_BYTES + register;
}

export function registerOf(number: number): Register {
  return number < FIRST_OF_4_BYTES ? (number - FIRST_OF_16_BYTES) * 4 : number - FIRST_OF_4_BYTES;
}
