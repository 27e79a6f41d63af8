import { once } from "node:events";
import { createServer } from "node:net";
import { answerLines } from "../../../support/answer-lines.ts";
import { becomeNobody } from "./nobody.ts";

/** Holds the abstract sockets of these names, without rights, and answers nobody. Usage: squat-main.ts NAME… */
becomeNobody();
for (const name of process.argv.slice(2)) {
  const server = createServer(() => {});
  server.listen(`\0${name}`);
  await once(server, "listening");
}
answerLines(() => "");
