import { runFlowtableTest } from "../src/index.ts";

/** Run in a namespace: tests the kernel's flowtables, and prints how they did as JSON. */
process.stdout.write(JSON.stringify(await runFlowtableTest()));
