import { openNftables } from "@fairlead/kernel";

/** Prints the number that each transaction of nf_tables raises in this network namespace. */
const kernel = await openNftables();
process.stdout.write(`${await kernel.generation()}\n`);
await kernel.close();
