import type { Case } from "./case.ts";
import { CHAINS } from "./cases/chains.ts";
import { ELEMENTS } from "./cases/elements.ts";
import { RULES } from "./cases/rules.ts";
import { SETS } from "./cases/sets.ts";
import { TRANSACTIONS } from "./cases/transactions.ts";

/** What a transaction does: run on the real kernel and on the fake, in both families. */
export const cases: readonly Case[] = [...TRANSACTIONS, ...CHAINS, ...RULES, ...SETS, ...ELEMENTS];
