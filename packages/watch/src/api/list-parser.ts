import { errorText, objectAt, textAt } from "@fairlead/base";
import { JsonSplitter } from "../json/splitter.ts";
import { BrokenResponseError, ProtocolError } from "./errors.ts";
import { type Identity, identityIn } from "./identity.ts";

/** What a list says of itself besides its items. */
export interface ListHead {
  readonly resourceVersion: string;
  /** Token of the next page; undefined: this was all. */
  readonly next: string | undefined;
}

/** An item as read, or why it was passed over and what its beginning says that it is. */
export type ListItem = { readonly raw: unknown } | { readonly unreadable: string; readonly identity: Identity };

export interface ListParser {
  /** @returns the items that the chunk completes. @throws ProtocolError not what the API speaks */
  write(chunk: Uint8Array): Iterable<ListItem>;
  /** @throws BrokenResponseError the text has not ended. @throws ProtocolError it is no list */
  end(): ListHead;
}

/**
 * Reads a JSON list of any size item by item; never holds more of it than one chunk's items and one that has not ended.
 */
export function listParser(): ListParser {
  const splitter = new JsonSplitter();
  // Bytes that are no UTF-8 would have become others' names.
  const decoder = new TextDecoder("utf-8", { fatal: true });
  return {
    write: (chunk) =>
      asProtocol(() =>
        splitter
          .write(chunk)
          .map(({ text, tooMuch }) =>
            tooMuch === undefined
              ? { raw: JSON.parse(decoder.decode(text)) as unknown }
              : { unreadable: tooMuch, identity: identityIn(Buffer.from(text).toString("utf8")) },
          ),
      ),
    end: () => {
      const around = splitter.end();
      if (around === undefined) throw new BrokenResponseError("the list ended early");
      return headOf(asProtocol(() => JSON.parse(decoder.decode(around)) as unknown));
    },
  };
}

/** @throws ProtocolError instead of what reading JSON throws */
function asProtocol<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new ProtocolError(`the list is not JSON: ${errorText(error)}`);
  }
}

/** @throws ProtocolError it has no version */
export function headOf(list: unknown): ListHead {
  const head = objectAt(list, "metadata");
  const resourceVersion = textAt(head, "resourceVersion");
  if (resourceVersion === undefined) throw new ProtocolError("the list has no resourceVersion");
  return { resourceVersion, next: textAt(head, "continue") };
}
