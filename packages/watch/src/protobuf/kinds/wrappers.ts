import { field, message, omitEmpty } from "../message.ts";

/** runtime.TypeMeta. */
export const typeMeta = message({ 1: omitEmpty("apiVersion", "string"), 2: omitEmpty("kind", "string") });

/** runtime.Unknown: what an object is, and its bytes. */
export const unknown = message({
  1: field("typeMeta", typeMeta),
  2: field("raw", "bytes"),
  3: omitEmpty("contentEncoding", "string"),
});

/** meta/v1 WatchEvent, with its runtime.RawExtension. */
export const watchEvent = message({
  1: field("type", "string"),
  2: field("object", message({ 1: field("raw", "bytes") })),
});
