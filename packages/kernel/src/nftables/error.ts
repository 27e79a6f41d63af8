import { getSystemErrorMap } from "node:util";
import type { BatchObject, NftFamily } from "@fairlead/netfilter/nft";

interface TableRef {
  readonly family: NftFamily;
  readonly table: string;
}

/** The number of an error by its name. */
export function errnoOf(code: string): number {
  for (const [number, [name]] of getSystemErrorMap()) if (name === code) return -number;
  throw new RangeError(`${code} is not the name of an error`);
}

/** Why the kernel refused a transaction. */
export class NftablesError extends Error {
  override readonly name = "NftablesError";
  /** The error's name, such as EEXIST. */
  readonly code: string;
  /** What the refused message was about; undefined where the kernel refused the whole. */
  readonly object: BatchObject | undefined;

  /** @param text the kernel's own words, where it has some */
  constructor({ family, table }: TableRef, object: BatchObject | undefined, errno: number, text?: string) {
    const [code, meaning] = getSystemErrorMap().get(-errno) ?? [`errno ${errno}`, "unknown error"];
    const what = object === undefined ? "the transaction" : objectText(object);
    super(`table ${family} ${table}: ${what}: ${code}: ${text ?? meaning}`);
    this.code = code;
    this.object = object;
  }
}

function objectText({ action, what, name }: BatchObject): string {
  const place =
    what === "rule" ? `a rule of chain ${name}` : what === "element" ? `elements of set ${name}` : `${what} ${name}`;
  return `cannot ${action} ${place}`;
}

/** The socket had no room for what the kernel answered. */
export function answerOfCommitLost(place: TableRef): NftablesError {
  return new NftablesError(
    place,
    undefined,
    errnoOf("ENOBUFS"),
    "the reply was lost; the change may have taken effect",
  );
}
