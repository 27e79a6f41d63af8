import { collectionOf, keyIn, LightApiServer } from "@fairlead/testkit/api-server";
import { answerLines } from "../support/script.ts";
import type { ApiChanges } from "./kube-proxy.ts";

/**
 * A light API server inside a namespace: says its URL once it listens, then takes `ApiChanges` as JSON, a line each,
 * and answers each line with an empty one.
 */
const api = new LightApiServer();
answerLines(
  (line) => {
    const { put = [], remove = [] }: ApiChanges = JSON.parse(line);
    for (const object of put) api.store.put(collectionOf(object), object);
    for (const object of remove) api.store.delete(collectionOf(object), keyIn(object));
    return "";
  },
  await api.start(),
);
