import { LightApiServer } from "@fairlead/testkit/api-server";
import { answerLines } from "../support/script.ts";

/**
 * A light API server inside a namespace: says its URL once it listens, then takes lists of objects as JSON, a line
 * each, and answers each line with an empty one.
 */
const api = new LightApiServer();
answerLines(
  (line) => {
    api.put(JSON.parse(line));
    return "";
  },
  await api.start(),
);
