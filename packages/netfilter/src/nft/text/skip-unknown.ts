import type { TokenReader } from "./tokens.ts";

/**
 * Steps over one statement that has no type here, as far as it can be told where it ends: those that are met often are
 * known by their options, any other ends before the next word that only a statement begins with.
 */
export function skipUnknown(reader: TokenReader): void {
  const known = SHAPES.find(({ words }) => reader.take(...words));
  if (known !== undefined) known.skip(reader);
  else skipToNext(reader);
}

function skipToNext(reader: TokenReader): void {
  do {
    if (reader.next().text === "{") reader.block();
  } while (!reader.atEnd && !STATEMENTS.has(reader.peek()));
}

/** Verdicts and statements that no match has within; interfaces' names, prefixes and comments are quoted. */
const STATEMENTS: ReadonlySet<string> = new Set([
  ...["accept", "drop", "return", "continue", "jump", "goto"],
  ...[
    "add",
    "update",
    "delete",
    "counter",
    "flow",
    "limit",
    "quota",
    "log",
    "queue",
    "reject",
    "notrack",
    "synproxy",
    "tproxy",
  ],
  ...["masquerade", "redirect", "snat", "dnat", "dup", "fwd"],
]);

interface Shape {
  readonly words: readonly string[];
  readonly skip: (reader: TokenReader) => void;
}

/** nft(8), "Statements"; as nft lists them. */
const SHAPES: readonly Shape[] = [
  { words: ["log"], skip: skipLog },
  { words: ["limit", "rate"], skip: skipLimit },
  { words: ["quota"], skip: skipQuota },
  { words: ["ct", "count"], skip: skipCount },
  ...["nftrace", "priority", "pkttype"].map((key) => ({ words: ["meta", key, "set"], skip: skipWord })),
];

function skipWord(reader: TokenReader): void {
  reader.next();
}

const LOG_OPTIONS = ["prefix", "level", "group", "snaplen", "queue-threshold"];

function skipLog(reader: TokenReader): void {
  while (!reader.atEnd) {
    if (LOG_OPTIONS.some((option) => reader.take(option))) reader.next();
    else if (!reader.take("flags")) return;
    else {
      const hasMore = reader.take("ip") || reader.take("tcp");
      reader.next();
      while (hasMore && reader.take(",")) reader.next();
    }
  }
}

/** `5/second burst 5 packets`, `over 10 mbytes/second burst 1 mbytes`. */
function skipLimit(reader: TokenReader): void {
  reader.take("over");
  if (!reader.next().text.includes("/")) reader.next();
  if (reader.take("burst")) skipAmount(reader);
}

/** `over 25 mbytes used 3 bytes`. */
function skipQuota(reader: TokenReader): void {
  if (!reader.take("over")) reader.take("until");
  skipAmount(reader);
  if (reader.take("used")) skipAmount(reader);
}

function skipAmount(reader: TokenReader): void {
  reader.next();
  reader.next();
}

function skipCount(reader: TokenReader): void {
  reader.take("over");
  reader.next();
}
