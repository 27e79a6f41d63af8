import { Resolver } from "node:dns/promises";

/**
 * Asks a DNS server at port 53 and prints the answers as JSON, as Node's resolver does it: over UDP, and over TCP when
 * the answer is cut. Usage: resolve-main.ts SERVER NAME TYPE
 */
const [, , server = "", name = "", type = ""] = process.argv;

const resolver = new Resolver({ timeout: 5_000, tries: 3 });
resolver.setServers([server]);
const answers = await ask();
console.log(JSON.stringify(answers));

async function ask(): Promise<readonly string[]> {
  if (type === "A") return resolver.resolve4(name);
  if (type === "AAAA") return resolver.resolve6(name);
  return (await resolver.resolveTxt(name)).map((pieces) => pieces.join(""));
}
