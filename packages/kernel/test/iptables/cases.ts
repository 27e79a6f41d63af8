import type { Case } from "./case.ts";
import { CHAINS } from "./cases/chains.ts";
import { JUMPS } from "./cases/jumps.ts";
import { RULES } from "./cases/rules.ts";
import { TABLES } from "./cases/tables.ts";

/** What iptables-restore --noflush does, in both families and variants: run on the real kernel and on the fake. */
export const cases: readonly Case[] = [...CHAINS, ...RULES, ...JUMPS, ...TABLES];
