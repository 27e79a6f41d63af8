import { readFile } from "node:fs/promises";
import { errorText } from "@fairlead/base";
import { CommandFailure } from "../frame/errors.ts";
import { readArchive } from "./archive.ts";
import { Sysdump } from "./dump.ts";

/** @throws CommandFailure when it cannot be read, or is no archive of `fairlead sysdump` */
export async function openSysdump(file: string): Promise<Sysdump> {
  let content: Uint8Array;
  try {
    content = await readFile(file);
  } catch (error) {
    throw new CommandFailure(`--sysdump=${file}: ${errorText(error)}`, { cause: error });
  }
  return new Sysdump(file, await readArchive(file, content));
}
