import { field, list, map, message, omitEmpty } from "../message.ts";

/** meta/v1 ObjectMeta. */
export const objectMeta = message({
  1: omitEmpty("name", "string"),
  3: omitEmpty("namespace", "string"),
  6: omitEmpty("resourceVersion", "string"),
  8: field("creationTimestamp", "time"),
  9: field("deletionTimestamp", "time"),
  11: map("labels"),
  12: map("annotations"),
});

/** meta/v1 ListMeta. */
export const listMeta = message({
  2: omitEmpty("resourceVersion", "string"),
  3: omitEmpty("continue", "string"),
});

/** meta/v1 Status. */
export const status = message({
  3: omitEmpty("message", "string"),
  4: omitEmpty("reason", "string"),
  5: field("details", message({ 4: list("causes", message({ 1: omitEmpty("reason", "string") })) })),
  6: omitEmpty("code", "int32"),
});
