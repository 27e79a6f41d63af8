import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { createServer } from "node:net";
import { answerLines } from "@fairlead/lab/support/script";
import { dropRights } from "./drop-rights.ts";

/**
 * Holds, without rights, the abstract socket of this name and answers no client; and opens these files, as a process
 * that locks them has to. Says which it could open when it is asked. Usage: squat-main.ts NAME FILE…
 */
const [, , name = "", ...files] = process.argv;

dropRights();
const server = createServer(() => {});
server.listen(`\0${name}`);
await once(server, "listening");
const opened = files.filter(mayOpen);
answerLines(() => opened.join(" "));

function mayOpen(file: string): boolean {
  try {
    closeSync(openSync(file, "r"));
    return true;
  } catch {
    return false;
  }
}
