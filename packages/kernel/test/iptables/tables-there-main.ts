import { areTablesThere } from "../../src/index.ts";

/** Run in a namespace: which variants have tables there, by family, as JSON. */
const of = async (family: "IPv4" | "IPv6") => ({
  nft: await areTablesThere(family, "nft"),
  legacy: await areTablesThere(family, "legacy"),
});
process.stdout.write(JSON.stringify({ IPv4: await of("IPv4"), IPv6: await of("IPv6") }));
