// Keeps the machine busy for `pnpm stress`: as many loops as its argument says, each a thread that would fill a processor.
// They end with the process that started this one, also when that is killed: its end is the end of standard input.
import { Worker } from "node:worker_threads";

process.stdin.resume().once("close", () => process.kill(process.pid, "SIGKILL"));
for (let loop = 0; loop < Number(process.argv[2]); loop++) new Worker("for (;;);", { eval: true });
