import { answerLines } from "@fairlead/lab/support/script";
import { execa } from "execa";

/** Runs a program until this script ends. Usage: run-program-main.ts PROGRAM ARGUMENT… */
const [, , program = "", ...args] = process.argv;

const argv = ["setpriv", "--pdeathsig", "KILL", program, ...args] as const;
const child = execa(argv[0], argv.slice(1), { stdio: "ignore", reject: false });
answerLines(() => String(child.pid));
