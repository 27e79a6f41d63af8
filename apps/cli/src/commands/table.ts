import type { Command } from "../frame/command.ts";
import { completionCommand } from "./completion/index.ts";
import { connectivityCommand } from "./connectivity/index.ts";
import { consoleCommand } from "./console/index.ts";
import { diffCommand } from "./diff/index.ts";
import { doctorCommand } from "./doctor/index.ts";
import { explainCommand } from "./explain/index.ts";
import { flowsCommand } from "./flows/index.ts";
import { migrateCommand } from "./migrate/index.ts";
import { ownershipCommand } from "./ownership/index.ts";
import { planCommand } from "./plan/index.ts";
import { statusCommand } from "./status/index.ts";
import { sysdumpCommand } from "./sysdump/index.ts";
import { topCommand } from "./top/index.ts";
import { traceCommand } from "./trace/index.ts";
import { verifyCommand } from "./verify/index.ts";
import { versionCommand } from "./version/index.ts";

/** Every command, in the order of help. */
export const COMMANDS: readonly Command[] = [
  planCommand,
  explainCommand,
  diffCommand,
  traceCommand,
  verifyCommand,
  ownershipCommand,
  flowsCommand,
  topCommand,
  statusCommand,
  doctorCommand,
  sysdumpCommand,
  connectivityCommand,
  consoleCommand,
  migrateCommand,
  versionCommand,
  completionCommand(() => COMMANDS),
];
