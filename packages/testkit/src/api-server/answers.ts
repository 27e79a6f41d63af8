import type { ServerResponse } from "node:http";
import type { RawObject } from "@fairlead/base";
import { encodeEvent, encodeObject } from "./protobuf/encode.ts";
import { kindIn } from "./resource-path.ts";
import { json, line } from "./respond.ts";

/** How lists and watches of one collection are answered. */
export interface Answers {
  list(response: ServerResponse, metadata: RawObject, items: readonly RawObject[]): ServerResponse;
  /** Of a watch's answer. */
  readonly contentType: string;
  /** One event of a watch. */
  event(type: string, object: RawObject): string | Uint8Array;
}

const PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf";

/** Protobuf where it is offered, asked for before anything else, and known for the collection's kind; else JSON. */
export function answersFor(collection: string, accept: string | undefined, offersProtobuf: boolean): Answers {
  const of = kindIn(collection);
  if (!offersProtobuf || accept?.startsWith(PROTOBUF_TYPE) !== true || of === undefined) return inJson;
  return inProtobuf(of);
}

const inJson: Answers = {
  list: (response, metadata, items) => json(response, 200, { kind: "List", apiVersion: "v1", metadata, items }),
  contentType: "application/json",
  event: line,
};

function inProtobuf({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): Answers {
  return {
    list: (response, metadata, items) => {
      response.writeHead(200, { "content-type": PROTOBUF_TYPE });
      return response.end(encodeObject(apiVersion, `${kind}List`, { metadata, items }));
    },
    contentType: `${PROTOBUF_TYPE};stream=watch`,
    event: (type, object) =>
      encodeEvent(
        type,
        type === "ERROR" ? encodeObject("v1", "Status", object) : encodeObject(apiVersion, kind, object),
      ),
  };
}
