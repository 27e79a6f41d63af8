import { JSONParser } from "@streamparser/json";
import { errorText, objectAt, textAt } from "../raw.ts";
import { BrokenResponseError, ProtocolError } from "./errors.ts";

/** What a list says of itself besides its items. */
export interface ListHead {
  readonly resourceVersion: string;
  /** Token of the next page; undefined: this was all. */
  readonly next: string | undefined;
}

export interface ListParser {
  /** @returns the items that the chunk completes. @throws ProtocolError not JSON */
  write(chunk: Uint8Array): readonly unknown[];
  /** @throws BrokenResponseError the text has not ended. @throws ProtocolError it is no list */
  end(): ListHead;
}

/** Reads a list of any size item by item; never holds more of it than one chunk's items. */
export function listParser(): ListParser {
  let items: unknown[] = [];
  let metadata: unknown;
  const parser = new JSONParser({ paths: ["$.metadata", "$.items.*"], keepStack: false });
  parser.onValue = ({ key, value }) => {
    if (key === "metadata") metadata = value;
    else items.push(value);
  };
  return {
    write: (chunk) => {
      try {
        parser.write(chunk);
      } catch (error) {
        throw new ProtocolError(`the list is not JSON: ${errorText(error)}`);
      }
      const completed = items;
      items = [];
      return completed;
    },
    end: () => {
      if (!parser.isEnded) throw new BrokenResponseError("the list broke off");
      return headOf(metadata);
    },
  };
}

function headOf(metadata: unknown): ListHead {
  const head = objectAt({ metadata }, "metadata");
  const resourceVersion = textAt(head, "resourceVersion");
  if (resourceVersion === undefined) throw new ProtocolError("the list has no resourceVersion");
  return { resourceVersion, next: textAt(head, "continue") };
}
