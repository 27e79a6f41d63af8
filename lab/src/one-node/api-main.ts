import { collectionOf, LightApiServer } from "@fairlead/testkit/api-server";
import { answerLines } from "../support/answer-lines.ts";

/**
 * A light API server inside a namespace: says its URL once it listens, then takes arrays of objects as JSON, a line
 * each, and answers each line with an empty one.
 */
const api = new LightApiServer();
answerLines(
  (line) => {
    for (const object of JSON.parse(line)) api.store.put(collectionOf(object), object);
    return "";
  },
  await api.start(),
);
