import { readFile } from "node:fs/promises";
import { errorText } from "@fairlead/base";
import { CommandFailure } from "../../frame/errors.ts";

/** Alongside the bundle; from the sources: where the bundle is built. */
const PAGE = new URL(
  import.meta.url.endsWith(".ts") ? "../../../dist/console.html" : "./console.html",
  import.meta.url,
);

/** @throws CommandFailure when it is not there */
export async function readPage(): Promise<string> {
  try {
    return await readFile(PAGE, "utf8");
  } catch (error) {
    throw new CommandFailure(`the console's page is missing from this installation: ${errorText(error)}`, {
      cause: error,
    });
  }
}
