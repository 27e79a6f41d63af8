import type { RawObject } from "@fairlead/base";
import { status } from "./kinds/metadata.ts";
import { readMessage } from "./read-message.ts";
import { unwrap } from "./wrapped.ts";

/** The Status that an answer is. @throws MalformedError when it is not a Status */
export function readStatus(bytes: Uint8Array): RawObject {
  return readMessage(unwrap(bytes).bytes, status);
}
