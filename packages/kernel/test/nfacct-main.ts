import { FakeRunner } from "../src/fake/index.ts";
import { createNfacct } from "../src/index.ts";
import { socketsIn } from "../src/netlink/socket.ts";

/** Run in a namespace, which a plain user enters with a process only: `read` or `ensure` of a counter by netlink. */
const [, , method = "", name = ""] = process.argv;
// No process may be needed.
const nfacct = createNfacct(new FakeRunner(), { open: socketsIn("/proc/self/ns/net").netfilter });
const answer = await (method === "read" ? nfacct.read(name) : nfacct.ensure(name));
process.stdout.write(JSON.stringify(answer ?? null));
