import { addressIn as lastIn } from "@fairlead/inspect";
import { UsageError } from "../frame/errors.ts";

/**
 * The address that stands for any pod of a CIDR.
 *
 * @throws UsageError when it is no CIDR
 */
export function addressIn(cidr: string): string {
  try {
    return lastIn(cidr);
  } catch {
    throw new UsageError(`--cluster-cidr=${cidr}: must be a CIDR`);
  }
}
