import { getSystemErrorMap } from "node:util";

/** What the kernel answered instead of doing what it was asked for. */
export class NetlinkError extends Error {
  override readonly name = "NetlinkError";
  /** The error's name, such as EPERM. */
  readonly code: string;

  /** @param what what it was asked for, in words */
  constructor(what: string, errno: number) {
    const [code, text] = getSystemErrorMap().get(-errno) ?? [`errno ${errno}`, "unknown error"];
    super(`${what}: ${code}: ${text}`);
    this.code = code;
  }
}
