import { answerLines } from "@fairlead/lab/support/script";
import { execa } from "execa";

/**
 * Makes and deletes a table without an end, with one long-lived nft; says how many transactions it has asked for.
 * Usage: churn-main.ts nft -i
 */
const [, , program = "", ...args] = process.argv;
const PAUSE_MS = 30;

// It ends with its standard input, and so with this process.
const nft = execa(program, args, { stdin: "pipe", stdout: "ignore", stderr: "ignore" });
let asked = 0;
setInterval(() => {
  nft.stdin.write("add table ip someone\ndelete table ip someone\n");
  asked += 2;
}, PAUSE_MS).unref();
answerLines(() => String(asked));
